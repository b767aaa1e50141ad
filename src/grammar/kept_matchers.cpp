#include "grammar/kept_matchers.h"

#include <utility>

namespace tandem::grammar {
namespace {

constexpr size_t kMostKept = 16;

}  // namespace

KeptMatchers::Kept* KeptMatchers::find(const gen::Grammar& grammar) {
  for (auto at = kept_.begin(); at != kept_.end(); ++at) {
    if (at->grammar.kind != grammar.kind || at->grammar.source != grammar.source) continue;
    kept_.splice(kept_.begin(), kept_, at);
    return &kept_.front();
  }
  return nullptr;
}

Result<text::bridge::MatcherHandle> KeptMatchers::copy(const gen::Grammar& grammar) {
  const std::lock_guard lock(mutex_);
  const Kept* kept = find(grammar);
  if (kept == nullptr) return Error{ErrorCode::kNotFound, "the grammar is not kept"};
  return text::bridge::clone(*kept->matcher);
}

void KeptMatchers::keep(const gen::Grammar& grammar, const tb_matcher& matcher) {
  const size_t bytes = text::bridge::bytes(matcher) + grammar.source.size();
  if (bytes > most_bytes_) return;
  auto copy = text::bridge::clone(matcher);
  if (!copy) return;
  const std::lock_guard lock(mutex_);
  if (find(grammar) != nullptr) return;  // another thread's
  kept_.push_front({.grammar = grammar, .matcher = *std::move(copy), .bytes = bytes});
  bytes_ += bytes;
  while (kept_.size() > kMostKept || bytes_ > most_bytes_) {
    bytes_ -= kept_.back().bytes;
    kept_.pop_back();
  }
}

bool KeptMatchers::is_checked(const gen::Grammar& grammar) {
  const std::lock_guard lock(mutex_);
  const Kept* kept = find(grammar);
  return kept != nullptr && kept->is_checked;
}

void KeptMatchers::set_checked(const gen::Grammar& grammar) {
  const std::lock_guard lock(mutex_);
  if (Kept* kept = find(grammar)) kept->is_checked = true;
}

}  // namespace tandem::grammar
