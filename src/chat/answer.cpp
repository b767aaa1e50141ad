#include "chat/answer.h"

#include <algorithm>
#include <utility>

namespace tandem::chat {

Answer::Answer(std::shared_ptr<const AnswerRules> rules)
    : rules_(std::move(rules)),
      detokenizer_(*rules_->tokenizer),
      stops_(rules_->stops),
      parser_(rules_->parsing, rules_->first_channel),
      acted_(rules_->acted),
      last_channel_(rules_->first_channel) {
  usage_.prompt_tokens = rules_->prompt_tokens;
  is_biased_ = wants_bias();
  if (is_biased_) note(Guard::kHesitation);
}

std::vector<EventBody> Answer::take(const gen::Event& event) {
  std::vector<EventBody> out;
  if (done_) return out;
  if (const auto* started = std::get_if<gen::Started>(&event.body)) {
    if (!cached_tokens_) cached_tokens_ = usage_.cached_tokens = started->cached_tokens;
  } else if (const auto* prefilled = std::get_if<gen::Prefilled>(&event.body)) {
    if (usage_.completion_tokens == 0)
      out.emplace_back(Progress{prefilled->done, prefilled->total, usage_.cached_tokens});
  } else if (const auto* tokens = std::get_if<gen::Tokens>(&event.body)) {
    for (const gen::Token& token : tokens->tokens) {
      if (!done_ && !on_detour_) draw(token, out);
    }
  } else if (const auto* finished = std::get_if<gen::Finished>(&event.body)) {
    if (is_unclosed(*finished)) {
      tokens_.pop_back();  // the stop id
      --usage_.completion_tokens;
      close_thinking(Guard::kUnclosedThought, out);
      return out;
    }
    const bool length = finished->reason == gen::FinishReason::kLength;
    flush(length, out);
    if (!done_) end(length ? FinishReason::kLength : own_end(), "", out);
  } else if (const auto* failed = std::get_if<gen::Failed>(&event.body)) {
    flush(false, out);
    if (!done_) fail(failed->error, out);
  } else {
    pop(drawn_.size(), last_channel_);
    fail({.code = ErrorCode::kCancelled, .message = "the request was cancelled"}, out);
  }
  return out;
}

void Answer::draw(const gen::Token& token, std::vector<EventBody>& out) {
  std::optional<LogprobEntry> logprob;
  if (rules_->logprobs && !is_stop_id(token.id)) logprob = logprob_of(token);
  add(token.id, std::move(logprob), out);
  guard(out);
}

void Answer::add(text::TokenId id,
                 std::optional<LogprobEntry> logprob,
                 std::vector<EventBody>& out) {
  ++usage_.completion_tokens;
  tokens_.push_back(id);
  if (is_stop_id(id)) return;
  drawn_.push_back({.begin = decoded_, .end = std::nullopt, .logprob = std::move(logprob)});
  if (is_hidden(id)) {
    drawn_.back().end = decoded_;
  } else {
    append_text(id, out);
  }
}

void Answer::append_text(text::TokenId id, std::vector<EventBody>& out) {
  const std::string text = detokenizer_.push(id);
  if (rules_->guards.repeated_span) repeats_.add(text);
  decoded_ += text.size();
  const bool complete = !detokenizer_.is_inside_character();
  for (size_t i = 0; i < drawn_.size(); ++i) {
    const bool is_last = i + 1 == drawn_.size();
    if (!drawn_[i].end && (complete || (!is_last && !text.empty()))) drawn_[i].end = decoded_;
  }
  parse(stops_.feed(text), out);
}

void Answer::parse(const StopFinder::Found& found, std::vector<EventBody>& out) {
  deliver(parser_.feed(found.text), out);
  if (parser_.is_over()) {
    beyond_ = static_cast<size_t>(
        std::ranges::count_if(drawn_, [this](const Drawn& token) { return token.begin >= said_; }));
    drawn_.clear();  // of the calls' end, and what follows: no text
    return end(own_end(), "", out);
  }
  if (!found.stop) return;
  finish(rules_->only_calls, out);
  pop(drawn_.size(), last_channel_);
  end(own_end(), *found.stop, out);
}

void Answer::deliver(const std::vector<dialect::Event>& events, std::vector<EventBody>& out) {
  for (const dialect::Event& event : events) {
    said_ = std::max(said_, event.end);
    if (std::holds_alternative<dialect::Text>(event.body)) {
      deliver_text(event, out);
    } else {
      drop_tokens(event, out);
      deliver_call(event, out);
    }
  }
}

void Answer::deliver_text(const dialect::Event& event, std::vector<EventBody>& out) {
  const auto& piece = std::get<dialect::Text>(event.body);
  last_channel_ = piece.channel;
  has_text_ |= piece.channel == Channel::kText;
  const auto rest = std::ranges::find_if(
      drawn_, [&](const Drawn& token) { return !token.end || *token.end > event.end; });
  const auto count = static_cast<size_t>(rest - drawn_.begin());
  out.emplace_back(
      Delta{.channel = last_channel_, .text = piece.text, .logprobs = pop(count, last_channel_)});
}

/// Tokens of markup and of calls have no logprobs; one that began as text belongs to the text.
void Answer::drop_tokens(const dialect::Event& event, std::vector<EventBody>& out) {
  if (event.begin == event.end) return;
  const auto own =
      std::ranges::find_if(drawn_, [&](const Drawn& token) { return token.begin >= event.begin; });
  auto entries = pop(static_cast<size_t>(own - drawn_.begin()), last_channel_);
  if (!entries.empty()) {
    out.emplace_back(Delta{.channel = last_channel_, .text = {}, .logprobs = std::move(entries)});
  }
  const auto rest = std::ranges::find_if(
      drawn_, [&](const Drawn& token) { return !token.end || *token.end > event.end; });
  drawn_.erase(drawn_.begin(), rest);
}

void Answer::deliver_call(const dialect::Event& event, std::vector<EventBody>& out) {
  if (const auto* started = std::get_if<dialect::CallStarted>(&event.body)) {
    out.emplace_back(CallStarted{.call = started->call,
                                 .id = started->id.empty() ? rules_->draw_call_id() : started->id,
                                 .name = started->name});
  } else if (const auto* part = std::get_if<dialect::CallArguments>(&event.body)) {
    out.emplace_back(CallArguments{.call = part->call, .json = part->json});
  } else if (const auto* ended = std::get_if<dialect::CallEnded>(&event.body)) {
    if (ended->complete) ++whole_calls_;
    out.emplace_back(CallEnded{.call = ended->call, .is_complete = ended->complete});
  } else if (std::holds_alternative<dialect::Misfit>(event.body)) {
    ++misfits_;
  }
}

/// Takes the first tokens off the queue and counts those of thinking.
std::vector<LogprobEntry> Answer::pop(size_t count, Channel channel) {
  std::vector<LogprobEntry> entries;
  for (size_t i = 0; i < count; ++i) {
    if (drawn_.front().logprob) entries.push_back(std::move(*drawn_.front().logprob));
    drawn_.pop_front();
  }
  if (channel == Channel::kThinking) usage_.reasoning_tokens += static_cast<uint32_t>(count);
  return entries;
}

/// The answer goes no further: what was held back is text, except bytes of half a character.
void Answer::flush(bool cut_off, std::vector<EventBody>& out) {
  detokenizer_.finish();
  parse(stops_.flush(), out);
  if (done_) return;
  finish(cut_off, out);
  auto entries = pop(drawn_.size(), last_channel_);
  if (entries.empty()) return;
  out.emplace_back(Delta{.channel = last_channel_, .text = {}, .logprobs = std::move(entries)});
}

void Answer::finish(bool cut_off, std::vector<EventBody>& out) {
  const bool was_in_call = parser_.is_in_call();
  auto events = parser_.finish(cut_off);
  if (cut_off && rules_->only_calls) leave_out_text(events);
  cut_in_call_ |= cut_off && (was_in_call || parser_.left_out_call());
  deliver(events, out);
}

/// Where calls are all that an answer may be, text that is left at its limit is the beginning of
/// one.
void Answer::leave_out_text(std::vector<dialect::Event>& events) {
  for (dialect::Event& event : events) {
    const auto* piece = std::get_if<dialect::Text>(&event.body);
    if (piece == nullptr || piece->channel != Channel::kText) continue;
    event.body = dialect::Markup{};
    cut_in_call_ = true;
  }
}

/// Of an answer that ended by itself or at a stop string.
FinishReason Answer::own_end() const {
  return whole_calls_ > 0 ? FinishReason::kToolCalls : FinishReason::kStop;
}

void Answer::end(FinishReason reason, std::string stop_text, std::vector<EventBody>& out) {
  done_ = true;
  out.emplace_back(End{.reason = reason,
                       .stop_text = std::move(stop_text),
                       .usage = usage_,
                       .broken_calls = misfits_,
                       .guards = acted_,
                       .cut_in_call = cut_in_call_});
}

void Answer::fail(Error error, std::vector<EventBody>& out) {
  done_ = true;
  out.emplace_back(Failed{.error = std::move(error), .usage = usage_});
}

bool Answer::is_stop_id(text::TokenId id) const {
  return !rules_->ignore_eos && std::ranges::find(rules_->stop_ids, id) != rules_->stop_ids.end();
}

/// Special tokens are not text, except those that markers are made of.
bool Answer::is_hidden(text::TokenId id) const {
  if (!rules_->tokenizer->is_special(id)) return false;
  const std::string_view spelling = rules_->tokenizer->spelling(id);
  return std::ranges::none_of(rules_->markers, [&](const std::string& marker) {
    return marker.find(spelling) != std::string::npos;
  });
}

LogprobEntry Answer::logprob_of(const gen::Token& token) const {
  const auto text_of = [this](text::TokenId id, float logprob) {
    return TokenText{.bytes = std::string(rules_->tokenizer->bytes(id)), .logprob = logprob};
  };
  LogprobEntry entry{.token = text_of(token.id, token.logprob), .top = {}};
  for (const gen::TokenLogprob& other : token.top) {
    entry.top.push_back(text_of(other.id, other.logprob));
  }
  return entry;
}

}  // namespace tandem::chat
