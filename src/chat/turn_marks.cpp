#include "chat/turn_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <random>

#include "dialect/json_text.h"

namespace tandem::chat {
namespace {

constexpr char kThinking = 't';
constexpr char kText = 'c';
constexpr char kCall = 'a';
constexpr char kLastCall = 'l';
constexpr char kNext = 'n';
constexpr char kEnd = 'z';

/// Letters that no text has: drawn once, so that nobody can write them.
const std::string& nonce() {
  static const std::string letters = [] {
    std::random_device random;
    std::string out = "tandemmark";
    for (int i = 0; i < 20; ++i) out.push_back(static_cast<char>('a' + random() % 20));
    return out;
  }();
  return letters;
}

/// Letters and digits only: no template escapes or trims them.
std::string mark(char kind, size_t turn) {
  return fmt::format("{}{}{}{}", nonce(), kind, turn, kEnd);
}

bool is_blank(const Json& message, const char* name) {
  const auto found = message.find(name);
  return found == message.end() || !found->is_string() ||
         dialect::trimmed(found->get_ref<const std::string&>()).empty();
}

void mark_turn(Json& message, size_t turn, const MarkedTurn& wanted) {
  if (wanted.asks_text || !is_blank(message, "content")) message["content"] = mark(kText, turn);
  if (wanted.asks_thinking) message["reasoning_content"] = mark(kThinking, turn);
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return;
  for (size_t i = 0; i < calls->size(); ++i) {
    Json& call = (*calls)[i];
    if (!call.is_object()) continue;
    Json& function = call.contains("function") ? call["function"] : call;
    if (!function.is_object()) continue;
    const Json marked{{"v", mark(i + 1 == calls->size() ? kLastCall : kCall, turn)}};
    const bool is_text = function.contains("arguments") && function["arguments"].is_string();
    function["arguments"] = is_text ? Json(marked.dump()) : marked;
  }
}

/// At the start of its text, behind what templates trim, and not in front of what they look for.
void mark_next(Json& message, size_t turn) {
  if (is_blank(message, "content")) return;
  auto content = message["content"].get<std::string>();
  const size_t begin = content.find(dialect::trimmed(content).front());
  if (content[begin] == '<') return;
  message["content"] = content.insert(begin, mark(kNext, turn));
}

struct Mark {
  char kind;
  size_t turn;
};

/// The mark whose kind and number these are; their length goes off the text.
std::optional<Mark> take_mark(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  Mark out{.kind = text.front(), .turn = 0};
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), out.turn);
  if (error != std::errc() || end == text.data() + text.size() || *end != kEnd) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return out;
}

void note(const Mark& mark, size_t at, std::vector<TurnPlace>& places) {
  if (mark.turn >= places.size()) return;
  TurnPlace& place = places[mark.turn];
  if (mark.kind == kNext) {
    if (!place.next) place.next = at;
    return;
  }
  place.begin = std::min(place.begin, at);
  place.end = at;
  place.ends_in_text = mark.kind == kText;
  place.shows_text |= mark.kind == kText;
  place.shows_thinking |= mark.kind == kThinking;
  place.shows_last_call |= mark.kind == kLastCall;
}

}  // namespace

Json with_marks(Json messages, const std::vector<MarkedTurn>& turns) {
  std::vector<bool> is_turn(messages.size() + 1);
  for (const MarkedTurn& turn : turns) is_turn[turn.message] = true;
  for (size_t i = 0; i < turns.size(); ++i) {
    const size_t at = turns[i].message;
    mark_turn(messages[at], i, turns[i]);
    if (at + 1 < messages.size() && !is_turn[at + 1]) mark_next(messages[at + 1], i);
  }
  return messages;
}

MarkedText read_marks(std::string_view rendered, size_t turns) {
  MarkedText out;
  out.places.resize(turns);
  while (true) {
    const size_t at = rendered.find(nonce());
    out.text += rendered.substr(0, at);
    if (at == std::string_view::npos) return out;
    rendered.remove_prefix(at + nonce().size());
    if (const auto mark = take_mark(rendered)) note(*mark, out.text.size(), out.places);
  }
}

TurnEnds::TurnEnds(const text::Tokenizer& tokenizer,
                   const std::vector<text::TokenId>& eos,
                   const std::vector<std::string>& markers) {
  for (text::TokenId id = 0; id < tokenizer.size(); ++id) {
    const bool ends_answers = std::ranges::find(eos, id) != eos.end();
    if (!ends_answers && !tokenizer.is_special(id)) continue;
    const std::string spelling(tokenizer.spelling(id));
    if (spelling.empty()) continue;
    const bool inside = std::ranges::any_of(markers, [&](const std::string& marker) {
      return marker.find(spelling) != std::string::npos;
    });
    if (ends_answers || !inside) ends_.push_back(spelling);
    special_.push_back(spelling);
  }
}

std::optional<size_t> TurnEnds::find(std::string_view text,
                                     size_t from,
                                     size_t limit,
                                     bool in_text) const {
  const auto end = first(ends_, text, from, limit);
  return end || !in_text ? end : first(special_, text, from, limit);
}

std::optional<size_t> TurnEnds::first(const std::vector<std::string>& spellings,
                                      std::string_view text,
                                      size_t from,
                                      size_t limit) {
  limit = std::min(limit, text.size());
  for (size_t at = from; at < limit; ++at) {
    const std::string_view rest = text.substr(at);
    for (const std::string& spelling : spellings) {
      if (rest.starts_with(spelling)) return at;
    }
  }
  return std::nullopt;
}

}  // namespace tandem::chat
