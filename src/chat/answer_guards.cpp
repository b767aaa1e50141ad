// What changes an answer's course: see chat/guards.h.
#include <algorithm>
#include <utility>

#include "chat/answer.h"

namespace tandem::chat {
namespace {

/// A model that begins to think again and again is closed so often, and then let be.
constexpr uint32_t kMostDetours = 8;

/// Thinking is closed between characters and outside of what may become a marker, unless that
/// takes longer than this.
constexpr uint32_t kPatienceTokens = 32;

}  // namespace

std::optional<Answer::Detour> Answer::take_detour() {
  if (!std::exchange(on_detour_, false) || done_) return std::nullopt;
  return Detour{.tokens = tokens_, .bias = bias()};
}

std::vector<gen::LogitBias> Answer::bias() const {
  return is_biased_ ? rules_->thinking_bias : std::vector<gen::LogitBias>();
}

bool Answer::wants_bias() const { return !rules_->thinking_bias.empty() && is_thinking(); }

void Answer::guard(std::vector<EventBody>& out) {
  if (!done_ && rules_->guards.repeated_span && repeats_.is_stuck(parser_.is_in_call())) {
    stop_repeating(out);
  }
  if (!done_ && is_budget_spent()) close_thinking(Guard::kThinkingBudget, out);
  if (!done_) follow_thinking();
}

/// The bias holds where thinking is and nowhere else: where that changes, a generation with the
/// other one goes on, from the first token that is to be drawn with it.
void Answer::follow_thinking() {
  const bool wants = wants_bias();
  if (wants == is_biased_ || usage_.completion_tokens >= rules_->max_tokens) return;
  if (wants && ++thoughts_ > kMostDetours) return;
  if (wants) note(Guard::kHesitation);
  is_biased_ = wants;
  on_detour_ = true;
}

/// What is cut off must not look whole: a call, an answer of a form.
void Answer::stop_repeating(std::vector<EventBody>& out) {
  note(Guard::kRepeatedSpan);
  const bool is_cut = rules_->is_bound || parser_.is_in_call();
  flush(is_cut, out);
  if (!done_) end(is_cut ? FinishReason::kLength : own_end(), "", out);
}

bool Answer::is_thinking() const {
  return !parser_.is_in_call() && parser_.channel() == Channel::kThinking;
}

bool Answer::is_budget_spent() const {
  const auto& budget = rules_->guards.thinking_budget;
  if (!budget || !can_close_thinking() || !is_thinking()) return false;
  const auto spent = usage_.reasoning_tokens + static_cast<uint32_t>(drawn_.size());
  return spent >= *budget && (drawn_.empty() || spent >= *budget + kPatienceTokens);
}

/// The model ended its answer inside thinking, and gave none.
bool Answer::is_unclosed(const gen::Finished& finished) const {
  return rules_->guards.unclosed_thought && !rules_->ends_whole &&
         finished.reason == gen::FinishReason::kStop && !tokens_.empty() &&
         is_stop_id(tokens_.back()) && !has_text_ && whole_calls_ == 0 && can_close_thinking() &&
         is_thinking();
}

/// And there is room for an answer behind it.
bool Answer::can_close_thinking() const {
  const size_t close = rules_->thinking_close.size();
  return close > 0 && detours_ < kMostDetours &&
         usage_.completion_tokens + close < rules_->max_tokens;
}

void Answer::close_thinking(Guard why, std::vector<EventBody>& out) {
  note(why);
  ++detours_;
  on_detour_ = true;
  for (const text::TokenId id : rules_->thinking_close) {
    if (!done_) add(id, std::nullopt, out);
  }
  if (!done_) follow_thinking();
}

void Answer::note(Guard guard) {
  if (std::ranges::find(acted_, guard) == acted_.end()) acted_.push_back(guard);
}

}  // namespace tandem::chat
