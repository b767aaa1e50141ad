#include "chat/turn_replay.h"

#include <algorithm>
#include <utility>

#include "base/unix_time.h"
#include "chat/message_forms.h"
#include "dialect/json_text.h"
#include "dialect/parser.h"
#include "replay/handle.h"

namespace tandem::chat {
namespace {

using dialect::trimmed;

/// How far behind a turn's last word its end may lie, where nothing marks what comes next.
constexpr size_t kMostFraming = 64;
/// As many bytes of the next message tell where it begins.
constexpr size_t kEnoughText = 256;

std::string text_in(const Json& message, const char* name) {
  const auto found = message.find(name);
  return found != message.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool says_nothing(const Json& message) {
  return trimmed(text_in(message, "content")).empty() && !message.contains("tool_calls") &&
         trimmed(text_in(message, "reasoning_content")).empty() && !message.contains(kTurnHandle);
}

bool has_thinking(const replay::Turn& turn) { return !trimmed(turn.thinking).empty(); }

/// Whether a value's text has the words, as templates write it that do not write JSON.
bool holds(const Json& value, std::string_view words) {
  if (value.is_string()) {
    return value.get_ref<const std::string&>().find(words) != std::string::npos;
  }
  return value.is_structured() &&
         std::ranges::any_of(value, [&](const Json& part) { return holds(part, words); });
}

bool mentions(const replay::Turn& turn, std::string_view words) {
  const auto has = [&](const std::string& text) { return text.find(words) != std::string::npos; };
  const auto calls_with = [&](const replay::TurnCall& call) {
    return has(call.arguments) || holds(Json::parse(call.arguments, nullptr, false), words);
  };
  return has(turn.text) || has(turn.thinking) || std::ranges::any_of(turn.calls, calls_with);
}

bool has_drawn_call_id(const replay::Turn& turn, const Json& message) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return false;
  return std::ranges::any_of(*calls, [&](const Json& call) {
    const std::string id = call.is_object() ? text_in(call, "id") : std::string();
    return is_drawn_call_id(id) &&
           std::ranges::find(turn.calls, id, &replay::TurnCall::id) != turn.calls.end();
  });
}

bool is_followed_by_user(const Json& messages, size_t index) {
  return std::any_of(messages.begin() + static_cast<std::ptrdiff_t>(index) + 1, messages.end(),
                     [](const Json& message) { return message.value("role", "") == "user"; });
}

/// What the ids of a model's tokens mean, and how its conversations become text.
std::string fingerprint(const text::ModelText& model, const dialect::Dialect& dialect) {
  replay::Digest digest;
  digest.add_field(model.chat_template ? model.chat_template->source() : std::string());
  digest.add_field(dialect.name);
  for (text::TokenId id = 0; id < model.tokenizer->size(); ++id) {
    digest.add_field(model.tokenizer->spelling(id));
  }
  return replay::hex_of(digest.value());
}

std::vector<std::string> markers_of(const text::ModelText& model, const dialect::Dialect& dialect) {
  dialect::Rules rules;
  rules.dialect = &dialect;
  if (model.thinking) rules.thinking = {.start = model.thinking->start, .end = model.thinking->end};
  return rules.markers();
}

/// What stands for a turn in the digest of what follows it.
replay::Digest after(const replay::Digest& before, const replay::Turn& turn) {
  replay::Digest digest;
  digest.add_field(before.value()).add_field(turn.frame).add_field(turn.opening);
  digest.add_field({reinterpret_cast<const char*>(turn.tokens.data()),
                    turn.tokens.size() * sizeof(gen::TokenId)});
  return digest;
}

/// Behind a frame that starts at `at` of the text, whatever white space it has there: some
/// templates write it otherwise behind a conversation's last message.
std::optional<size_t> behind_frame(std::string_view text, size_t at, std::string_view frame) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto is_space = [&](char c) { return kSpace.find(c) != std::string_view::npos; };
  const auto skip = [&] {
    while (at < text.size() && is_space(text[at])) ++at;
  };
  for (const char c : frame) {
    if (is_space(c)) continue;
    skip();
    if (at == text.size() || text[at] != c) return std::nullopt;
    ++at;
  }
  if (!frame.empty() && is_space(frame.back())) skip();
  return at;
}

/// What the template wrote behind the last message of a prompt; empty when that is not certain.
std::string_view frame_of(std::string_view prompt, const Json& messages) {
  if (messages.empty()) return {};
  const std::string said = text_in(messages.back(), "content");
  std::string_view words = trimmed(said);
  words = words.substr(words.size() - std::min(words.size(), kEnoughText));
  const size_t found = words.empty() ? std::string_view::npos : prompt.rfind(words);
  if (found == std::string_view::npos) return {};
  const std::string_view frame = prompt.substr(found + words.size());
  return frame.size() <= kEnoughText ? frame : std::string_view();
}

}  // namespace

/// Counted when a prompt is made for an answer.
struct TurnReplay::Tally {
  explicit Tally(replay::Counts* counted) : counts(counted) {}

  void add(std::atomic<uint64_t> replay::Counts::* count, uint64_t by = 1) const {
    if (counts) (counts->*count).fetch_add(by, std::memory_order_relaxed);
  }

  replay::Counts* counts;
};

void ReplayedPrompt::open_further(std::string_view words) {
  text += words;
  pieces.back().text += words;
  pieces.back().end = text.size();
  if (start) start->opening += words;
}

Result<std::vector<gen::TokenId>> ReplayedPrompt::encode(const text::Tokenizer& tokenizer,
                                                         std::vector<TextSpan>& spans) const {
  std::vector<gen::TokenId> ids;
  for (const PromptPiece& piece : pieces) {
    const auto words = tokenizer.encode(piece.text, false);
    if (!words) return words.error();
    ids.insert(ids.end(), words->begin(), words->end());
    spans.push_back({.tokens = words->size(), .begin = piece.begin, .end = piece.end});
    if (piece.turn == nullptr) continue;
    const auto& drawn = piece.turn->tokens;
    ids.insert(ids.end(), drawn.begin(), drawn.end());
    spans.push_back(
        {.tokens = drawn.size(), .begin = piece.end, .end = piece.end, .is_turn = true});
  }
  return ids;
}

TurnReplay::TurnReplay(const text::ModelText& model,
                       const dialect::Dialect& dialect,
                       std::shared_ptr<replay::Memory> memory,
                       std::string handle_key)
    : fingerprint_(memory ? fingerprint(model, dialect) : std::string()),
      thinking_(model.thinking),
      ends_(*model.tokenizer, model.eos, markers_of(model, dialect)),
      memory_(std::move(memory)),
      handle_key_(std::move(handle_key)) {}

TurnStart TurnReplay::start_for(const std::string& salt) const {
  replay::Digest digest;
  TurnStart start;
  start.began = unix_microseconds();
  start.owner = replay::hex_of(digest.add_field(fingerprint_).add_field(salt).value());
  return start;
}

Result<ReplayedPrompt> TurnReplay::prompt(const Conversation& conversation,
                                          const RenderSettings& settings,
                                          const std::string& salt,
                                          bool counts) const {
  ReplayedPrompt out;
  if (!memory_) {
    auto text = render(conversation, settings);
    if (!text) return text.error();
    out.pieces.push_back({.text = *text, .turn = nullptr, .begin = 0, .end = text->size()});
    out.text = std::move(*text);
    return out;
  }
  const Tally tally(counts ? &memory_->counts() : nullptr);
  TurnStart start = start_for(salt);
  Conversation talk = conversation;
  auto turns = find(talk, salt, settings.chat_template.mentions("developer"), start, tally);
  while (true) {
    auto rendering = render_any(talk, settings);
    if (!rendering) {  // perhaps because of a thought that was put back
      talk = conversation;
      turns.clear();
      rendering = render_any(talk, settings);
    }
    if (!rendering) return rendering.error();
    out = {.text = std::move(rendering->text), .pieces = {}, .start = start};
    const auto marks = marked(talk, turns, settings, rendering->form);
    const Fates fates = splice(talk, turns, marks, out);
    if (take_back_thoughts(conversation, talk, turns, marks, fates)) continue;
    count(turns, fates, tally);
    break;
  }
  if (conversation.continues_last_message) out.start.reset();
  return out;
}

size_t TurnReplay::thoughts_not_found(const Conversation& conversation,
                                      const std::string& salt,
                                      bool knows_developer) const {
  const auto lacks_thought = [](const Json& message) {
    return message.contains(kTurnHandle) && text_in(message, "reasoning_content").empty();
  };
  if (std::ranges::none_of(conversation.messages, lacks_thought)) return 0;
  Conversation talk = conversation;
  std::vector<Found> turns;
  if (memory_) {
    TurnStart start = start_for(salt);
    turns = find(talk, salt, knows_developer, start, Tally(nullptr));
  }
  size_t out = 0;
  for (size_t i = 0; i < talk.messages.size(); ++i) {
    const bool is_found = std::ranges::find(turns, i, &Found::message) != turns.end();
    if (lacks_thought(talk.messages[i]) && !is_found) ++out;
  }
  return out;
}

/// A turn found by its words alone may be one of another conversation, whose thoughts do not belong
/// into this one. True: the prompt shows such a thought, and is to be rendered without it.
bool TurnReplay::take_back_thoughts(const Conversation& original,
                                    Conversation& talk,
                                    std::vector<Found>& turns,
                                    const std::optional<MarkedText>& marks,
                                    const Fates& fates) {
  bool any = false;
  for (size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].thought != Thought::kSupposed) continue;
    const bool is_ours = marks && fates[i] != Fate::kElsewhere;
    if (is_ours || (marks && !marks->places[i].shows_thinking)) continue;
    talk.messages[turns[i].message] = original.messages[turns[i].message];
    turns[i].thought = Thought::kNone;
    any = true;
  }
  return any;
}

void TurnReplay::count(const std::vector<Found>& turns, const Fates& fates, const Tally& tally) {
  for (size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].thought != Thought::kNone) tally.add(&replay::Counts::thoughts);
    if (i >= fates.size()) continue;
    if (fates[i] == Fate::kElsewhere) tally.add(&replay::Counts::elsewhere);
    if (fates[i] == Fate::kNotShown) tally.add(&replay::Counts::not_shown);
    if (fates[i] != Fate::kSpliced) continue;
    tally.add(&replay::Counts::spliced);
    tally.add(&replay::Counts::tokens, turns[i].turn->tokens.size());
  }
}

/// The messages that are turns, in their order; thinking that was dropped is put back in, for the
/// time being where a turn is not named.
std::vector<TurnReplay::Found> TurnReplay::find(Conversation& conversation,
                                                const std::string& salt,
                                                bool knows_developer,
                                                TurnStart& start,
                                                const Tally& tally) const {
  std::vector<Found> turns;
  const auto messages = plain_messages(conversation.messages, knows_developer);
  if (!messages) return turns;  // to be refused
  const dialect::Tools tools(conversation.tools);
  for (size_t i = 0; i < messages->size(); ++i) {
    const Json& message = (*messages)[i];
    const bool goes_on = conversation.continues_last_message && i + 1 == messages->size();
    if (message["role"] == "assistant" && !goes_on && !says_nothing(conversation.messages[i])) {
      const std::string handle = text_in(conversation.messages[i], kTurnHandle);
      const auto named = by_handle(handle, start, salt);
      const auto turn = named ? named : look_up(message, start);
      if (turn == nullptr) {
        tally.add(&replay::Counts::unknown);
      } else if (!is_echo(*turn, message, tools)) {
        tally.add(&replay::Counts::edited);
      } else {
        Found found{.message = i, .turn = turn};
        if (has_thinking(*turn) && text_in(message, "reasoning_content").empty()) {
          conversation.messages[i]["reasoning_content"] = turn->thinking;
          const bool is_named = turn == named || has_drawn_call_id(*turn, message);
          found.thought = is_named ? Thought::kNamed : Thought::kSupposed;
        }
        turns.push_back(std::move(found));
      }
    }
    start.lineage.add(message);
  }
  return turns;
}

std::shared_ptr<const replay::Turn> TurnReplay::by_handle(const std::string& handle,
                                                          const TurnStart& start,
                                                          const std::string& salt) const {
  const auto id = replay::unseal(handle_key_, salt, handle);
  return id ? memory_->find(start.owner, replay::turn_key(*id)) : nullptr;
}

std::shared_ptr<const replay::Turn> TurnReplay::look_up(const Json& message,
                                                        const TurnStart& start) const {
  if (auto turn = memory_->find(start.owner, start.lineage.key_of(message))) return turn;
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return nullptr;
  for (const Json& call : *calls) {
    const std::string id = call.is_object() ? text_in(call, "id") : std::string();
    if (!is_drawn_call_id(id)) continue;
    if (auto turn = memory_->find(start.owner, replay::call_key(id))) return turn;
  }
  return nullptr;
}

/// Nothing when there is no turn, or the template refuses the marks. Where it leaves calls out,
/// text is marked in their place.
std::optional<MarkedText> TurnReplay::marked(const Conversation& conversation,
                                             const std::vector<Found>& turns,
                                             const RenderSettings& settings,
                                             size_t form) const {
  const auto messages =
      plain_messages(conversation.messages, settings.chat_template.mentions("developer"));
  if (turns.empty() || !messages) return std::nullopt;
  std::vector<MarkedTurn> wanted;
  for (const Found& found : turns) {
    const bool asks = has_thinking(*found.turn) || !found.turn->opening.empty();
    wanted.push_back({.message = found.message, .asks_thinking = asks});
  }
  const auto attempt = [&]() -> std::optional<MarkedText> {
    Conversation talk = conversation;
    talk.messages = with_marks(*messages, wanted);
    const auto rendered = render_form(talk, settings, form);
    return rendered ? std::optional(read_marks(*rendered, turns.size())) : std::nullopt;
  };
  auto marks = attempt();
  if (!marks) return marks;
  bool is_complete = true;
  for (size_t i = 0; i < turns.size(); ++i) {
    wanted[i].asks_text = !turns[i].turn->calls.empty() && !marks->places[i].shows_last_call;
    is_complete &= !wanted[i].asks_text;
  }
  if (is_complete) return marks;
  auto again = attempt();
  return again ? again : marks;
}

TurnReplay::Fates TurnReplay::splice(const Conversation& conversation,
                                     const std::vector<Found>& turns,
                                     const std::optional<MarkedText>& marks,
                                     ReplayedPrompt& out) const {
  Fates fates;
  const std::string_view text = out.text;
  const std::string_view opening = opening_of(text, thinking_);
  replay::Digest seen;
  size_t run = 0;     // where text begins that no piece has yet
  size_t hashed = 0;  // up to where `seen` knows it
  for (size_t i = 0; marks && i < turns.size(); ++i) {
    const replay::Turn& turn = *turns[i].turn;
    const size_t begin = run + turn.run_bytes;
    const bool lies_in = begin >= hashed && begin <= text.size() - opening.size();
    if (lies_in) {
      seen.add(text.substr(hashed, begin - hashed));
      hashed = begin;
    }
    const bool is_same = lies_in && seen.value() == turn.before;
    const auto start = is_same ? behind_frame(text, begin, turn.frame) : std::nullopt;
    if (!start) {
      fates.push_back(Fate::kElsewhere);
      continue;
    }
    const auto end = end_of(conversation, turns[i], i, *marks, text, *start);
    if (!end) {
      fates.push_back(Fate::kNotShown);
      continue;
    }
    out.pieces.push_back(
        {.text = std::string(text.substr(run, begin - run)) + turn.frame + turn.opening,
         .turn = turns[i].turn,
         .begin = run,
         .end = *start});
    seen = after(seen, turn);
    run = hashed = *end;
    fates.push_back(Fate::kSpliced);
  }
  out.pieces.push_back(
      {.text = std::string(text.substr(run)), .turn = nullptr, .begin = run, .end = text.size()});
  out.start->opening = opening;
  const size_t opened = std::max(text.size() - opening.size(), hashed);
  const std::string_view frame = frame_of(text.substr(run, opened - run), conversation.messages);
  const size_t before = std::max(opened - frame.size(), hashed);
  out.start->frame = text.substr(before, opened - before);
  out.start->run_bytes = before - run;
  out.start->before = seen.add(text.substr(hashed, before - hashed)).value();
  return fates;
}

/// Where in the rendering what the template shows of a turn ends; nothing when it does not show all
/// that counts.
std::optional<size_t> TurnReplay::end_of(const Conversation& conversation,
                                         const Found& found,
                                         size_t index,
                                         const MarkedText& marks,
                                         std::string_view text,
                                         size_t begin) const {
  const replay::Turn& turn = *found.turn;
  const TurnPlace& place = marks.places[index];
  const bool shows_words = turn.calls.empty() || place.shows_last_call || place.shows_text;
  if (place.begin == std::string::npos || !shows_words) return std::nullopt;
  // A thought that the prompt opened and closed says how the turn was drawn, until somebody asks
  // anew.
  const bool is_opened = text.substr(begin).starts_with(turn.opening) ||
                         !is_followed_by_user(conversation.messages, found.message);
  if ((has_thinking(turn) || !is_opened) && !place.shows_thinking) return std::nullopt;

  const std::string_view marked = marks.text;
  const bool is_last = index + 1 == marks.places.size();
  const size_t later = is_last ? marked.size() : marks.places[index + 1].begin;
  const size_t limit = std::min(later, place.next.value_or(place.end + kMostFraming));
  const auto at = ends_.find(marked, place.end, limit, place.ends_in_text);
  if (!at) return std::nullopt;
  if (is_last) {
    const std::string_view rest = marked.substr(*at);
    if (!text.substr(begin).ends_with(rest)) return std::nullopt;
    return text.size() - rest.size();
  }
  std::string_view sign;  // what follows the turn, and nothing before
  if (place.next) {
    const std::string said = text_in(conversation.messages[found.message + 1], "content");
    const size_t size = *place.next - *at + std::min(trimmed(said).size(), kEnoughText);
    sign = marked.substr(*at, std::min(size, later - *at));
  } else {
    const auto second = ends_.find(marked, *at + 1, std::min(later, *at + kMostFraming), true);
    if (!second) return std::nullopt;
    sign = marked.substr(*at, *second - *at);
  }
  if (mentions(turn, trimmed(sign))) return std::nullopt;
  const size_t end = text.find(sign, begin);
  return end == std::string_view::npos ? std::nullopt : std::optional(end);
}

std::string_view opening_of(std::string_view prompt,
                            const std::optional<text::ThinkingMarkers>& thinking) {
  constexpr std::string_view kSpace = " \t\r\n";
  if (!thinking) return {};
  const auto cut = [&](std::string_view text) {
    return text.substr(0, text.find_last_not_of(kSpace) + 1);
  };
  std::string_view rest = cut(prompt);
  size_t begin = prompt.size();
  if (rest.ends_with(thinking->end)) {
    begin = rest.size() - thinking->end.size();
    rest = cut(rest.substr(0, begin));
  }
  if (rest.ends_with(thinking->start)) begin = rest.size() - thinking->start.size();
  return prompt.substr(begin);
}

}  // namespace tandem::chat
