#include "replay/known_prompts.h"

#include <algorithm>

#include "gen/common_tokens.h"

namespace tandem::replay {

KnownPrompts::Added KnownPrompts::add(const std::string& owner,
                                      const std::vector<gen::TokenId>& prompt) {
  const std::lock_guard lock(mutex_);
  auto closest = known_.end();
  size_t most = 0;
  for (auto known = known_.begin(); known != known_.end(); ++known) {
    if (known->owner != owner) continue;
    const size_t shared = gen::common_tokens(*known->tokens, prompt);
    if (closest != known_.end() && shared <= most) continue;
    closest = known;
    most = shared;
  }
  Added out;
  const bool goes_on = closest != known_.end() && most == closest->tokens->size();
  if (closest != known_.end() && !goes_on && most < prompt.size()) {
    out.divergence = Divergence{.token = static_cast<uint32_t>(most),
                                .known_tokens = static_cast<uint32_t>(closest->tokens->size())};
  }
  if (goes_on) {
    tokens_ -= closest->tokens->size();
    known_.erase(closest);
  }
  out.ticket = std::make_shared<std::vector<gen::TokenId>>(prompt);
  known_.push_front({.owner = owner, .tokens = out.ticket});
  tokens_ += prompt.size();
  trim(owner);
  return out;
}

void KnownPrompts::answered(const Ticket& ticket, const std::vector<gen::TokenId>& tokens) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(known_, ticket, &Known::tokens);
  if (known == known_.end()) return;  // forgotten meanwhile
  ticket->insert(ticket->end(), tokens.begin(), tokens.end());
  tokens_ += tokens.size();
}

void KnownPrompts::trim(const std::string& owner) {
  size_t own = 0;
  for (auto known = known_.begin(); known != known_.end();) {
    own += known->owner == owner ? 1 : 0;
    const bool surplus = known->owner == owner && own > limits_.per_owner;
    if (surplus) tokens_ -= known->tokens->size();
    known = surplus ? known_.erase(known) : std::next(known);
  }
  while ((tokens_ > limits_.max_tokens || known_.size() > limits_.max_prompts) &&
         known_.size() > 1) {
    tokens_ -= known_.back().tokens->size();
    known_.pop_back();
  }
}

}  // namespace tandem::replay
