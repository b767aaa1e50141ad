#include "plan/state_hash.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <vector>

#include "plan/samples_test.h"

namespace tandem::plan {
namespace {

uint64_t after(const StepPlan& plan, uint32_t epoch = 3) {
  StateHash hash;
  hash.reset(epoch);
  return hash.step(plan);
}

TEST_CASE("state hash: equal plans give equal chains, in any process") {
  CHECK(after(samples::plan()) == after(samples::plan()));
  CHECK(after(samples::plan()) == 0x49d5528847727ec2U);
}

TEST_CASE("state hash: any difference in what ran changes it") {
  const std::vector<std::function<void(StepPlan&)>> changes = {
      [](StepPlan&) {},
      [](StepPlan& p) { p.sequence = 42; },
      [](StepPlan& p) { p.copies.clear(); },
      [](StepPlan& p) { p.copies[0].to = 8; },
      [](StepPlan& p) { p.rows[0].request = 13; },
      [](StepPlan& p) { p.rows[0].numeric_class = NumericClass::kStep; },
      [](StepPlan& p) { p.rows[0].start = 15; },
      [](StepPlan& p) { p.rows[0].tokens[1] = 8; },
      [](StepPlan& p) { p.rows[0].tokens.pop_back(); },
      [](StepPlan& p) { p.rows[0].pages[3] = 10; },
      [](StepPlan& p) { p.rows[1].wants_logits = false; },
      [](StepPlan& p) { p.rows[2].draw.reset(); },
      [](StepPlan& p) { p.rows[2].draw->temperature = 0.8F; },
      [](StepPlan& p) { p.rows[2].draw->seed ^= 1; },
      [](StepPlan& p) { p.rows[2].reuse->from = 32; },
      [](StepPlan& p) { p.rows[3].pooling = gen::Pooling::kMean; },
      [](StepPlan& p) { std::swap(p.rows[0], p.rows[1]); },
      [](StepPlan& p) { p.rows.pop_back(); }};
  std::set<uint64_t> seen;
  for (const auto& change : changes) {
    StepPlan plan = samples::plan();
    change(plan);
    seen.insert(after(plan));
  }
  seen.insert(after(samples::plan(), 4));
  CHECK(seen.size() == changes.size() + 1);
}

TEST_CASE("state hash: a difference stays in every later value of the chain") {
  StateHash a;
  StateHash b;
  a.reset(1);
  b.reset(1);
  StepPlan other = samples::plan();
  other.rows[0].pages[0] = 99;
  a.step(samples::plan());
  b.step(other);
  for (int i = 0; i < 10; ++i) CHECK(a.step(samples::plan()) != b.step(samples::plan()));
}

TEST_CASE("state hash: a request's resulting length counts") {
  StateHash hash;
  hash.reset(3);
  hash.begin(41);
  hash.copy(samples::plan().copies[0]);
  hash.window_copy(samples::plan().window_copies[0]);
  for (const Row& row : samples::plan().rows) hash.row(row, 1);
  CHECK(hash.end() != after(samples::plan()));
}

}  // namespace
}  // namespace tandem::plan
