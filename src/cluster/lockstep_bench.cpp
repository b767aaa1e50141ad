// What lockstep alone costs a step, by the length of the rows: two ranks that compute nothing, over
// a plan link on loopback.
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "cluster/follower.h"
#include "cluster/follower_links.h"
#include "cluster/lockstep.h"
#include "plan/state_hash.h"

namespace {

using namespace tandem;

constexpr uint32_t kPageTokens = 32;

/// Hashes plans as a rank does, and that is all.
class IdleRunner final : public engine::Runner {
 public:
  engine::RunnerInfo info() const override {
    return {.vocab = 1, .max_context = 1U << 20, .page_tokens = kPageTokens, .pages = 1U << 18};
  }
  Status issue(const plan::StepPlan& plan) override {
    plan_ = plan;
    return {};
  }
  Result<engine::StepResult> complete() override {
    return engine::StepResult{
        .sequence = plan_.sequence, .logits = {}, .state_hash = hash_.step(plan_)};
  }
  Status reset(uint32_t epoch) override {
    hash_.reset(epoch);
    return {};
  }
  void abort() override {}

 private:
  plan::StepPlan plan_;
  plan::StateHash hash_;
};

/// Decode rows of `tokens` positions; pages in runs of `run` neighbours.
plan::StepPlan decode_plan(uint32_t rows, uint32_t tokens, uint32_t run) {
  std::mt19937 random(3);
  plan::StepPlan plan{.epoch = 1};
  for (uint32_t r = 0; r < rows; ++r) {
    plan::Row row{.request = r + 1,
                  .numeric_class = plan::NumericClass::kStep,
                  .start = tokens,
                  .tokens = {0},
                  .wants_logits = true};
    while (row.pages.size() * kPageTokens <= tokens) {
      const uint32_t first = random() % (1U << 17);
      for (uint32_t i = 0; i < run; ++i) row.pages.push_back(first + i);
    }
    plan.rows.push_back(std::move(row));
  }
  return plan;
}

double step_us(uint32_t rows, uint32_t tokens, uint32_t run) {
  IdleRunner first;
  IdleRunner second;
  auto links = cluster::FollowerLinks::listen("127.0.0.1:0");
  if (!links) return -1;
  plan::Form form{.epoch = 1, .rank = 0, .size = 2};
  form.plan_addresses.assign(2, (*links)->address());
  form.secret.assign(32, std::byte{5});
  cluster::Follower follower(second);
  std::thread thread([&follower, form]() mutable {
    form.rank = 1;
    if (follower.join(form)) follower.run();
    follower.leave();
  });
  double result = -1;
  {
    cluster::LockstepRunner lockstep(first, **links, {});
    lockstep.prepare(form);
    if (lockstep.reset(1)) {
      plan::StepPlan plan = decode_plan(rows, tokens, run);
      constexpr uint64_t kWarm = 50;
      constexpr uint64_t kSteps = 400;
      auto begin = std::chrono::steady_clock::now();
      for (; plan.sequence < kWarm + kSteps; ++plan.sequence) {
        if (plan.sequence == kWarm) begin = std::chrono::steady_clock::now();
        if (!lockstep.issue(plan) || !lockstep.complete()) return -1;
      }
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      result = took.count() / kSteps;
    }
    follower.abort();
  }
  thread.join();
  return result;
}

}  // namespace

int main() {
  for (const uint32_t tokens : {100U, 10'000U, 100'000U}) {
    for (const uint32_t run : {1U, 8U, 64U}) {
      std::printf("8 rows of %6u tokens, pages in runs of %2u: %7.0f us a step\n", tokens, run,
                  step_us(8, tokens, run));
    }
  }
}
