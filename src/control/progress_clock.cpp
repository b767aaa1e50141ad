#include "control/progress_clock.h"

#include <algorithm>

namespace tandem::control {

void ProgressClock::begin_epoch(TimePoint now, bool is_fresh) {
  beats_.clear();
  moved_at_ = now;
  reported_at_ = now;
  is_fresh_ = is_fresh;
}

void ProgressClock::beat(uint32_t rank, uint64_t steps, Duration predicted_step, TimePoint now) {
  const auto [it, is_new] = beats_.try_emplace(rank);
  if (!is_new && it->second.steps != steps) {
    moved_at_ = now;
    is_fresh_ = false;
  }
  it->second = {.steps = steps, .predicted = predicted_step};
}

void ProgressClock::report(TimePoint now) {
  moved_at_ = now;
  reported_at_ = now;
}

void ProgressClock::idle(TimePoint now) {
  moved_at_ = now;
  reported_at_ = now;
}

bool ProgressClock::is_stalled(TimePoint now) const {
  Duration limit = std::max(options_.floor, predicted_step() * options_.factor);
  if (is_fresh_) limit = std::max(limit, options_.first_step);
  const Duration silence_limit = std::max(limit, options_.silence);
  return now - moved_at_ > limit || now - reported_at_ > silence_limit;
}

Duration ProgressClock::predicted_step() const {
  Duration longest{};
  for (const auto& [rank, beat] : beats_) longest = std::max(longest, beat.predicted);
  return longest;
}

}  // namespace tandem::control
