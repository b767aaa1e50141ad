#include "plan/state_hash.h"

#include <xxhash.h>

#include "plan/codec.h"

namespace tandem::plan {

void StateHash::reset(uint32_t epoch) { value_ = XXH3_64bits_withSeed("tandem", 6, epoch); }

void StateHash::begin(uint64_t sequence) {
  executed_ = Writer();
  executed_(sequence);
}

void StateHash::copy(const PageCopy& copy) { executed_('C', copy); }

void StateHash::window_copy(const PageCopy& copy) { executed_('W', copy); }

void StateHash::row(const Row& row, uint32_t length) { executed_('R', row, length); }

uint64_t StateHash::end() {
  const Bytes& bytes = executed_.bytes();
  value_ = XXH3_64bits_withSeed(bytes.data(), bytes.size(), value_);
  return value_;
}

uint64_t StateHash::step(const StepPlan& plan) {
  begin(plan.sequence);
  for (const PageCopy& page_copy : plan.copies) copy(page_copy);
  for (const PageCopy& page_copy : plan.window_copies) window_copy(page_copy);
  for (const Row& r : plan.rows) row(r, r.start + static_cast<uint32_t>(r.tokens.size()));
  return end();
}

}  // namespace tandem::plan
