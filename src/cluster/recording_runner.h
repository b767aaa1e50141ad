// RecordingRunner: passes everything on to another Runner, counts and times its steps for beats,
// and writes executed plans to a log.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/clock.h"
#include "engine/runner.h"
#include "plan/plan_log.h"

namespace tandem::cluster {

/// Any thread may read the counters.
class RecordingRunner final : public engine::Runner {
 public:
  /// Borrows the runner. Without a log, plans are not kept.
  RecordingRunner(engine::Runner& inner, std::optional<plan::PlanLogWriter> log);

  engine::RunnerInfo info() const override { return inner_.info(); }
  Status issue(const plan::StepPlan& plan) override;
  Result<engine::StepResult> complete() override;
  Status reset(uint32_t epoch) override;
  void abort() override { inner_.abort(); }

  /// Completed since construction.
  uint64_t steps() const { return steps_; }

  /// How long the oldest step in flight should take at most: its tokens at the slowest time a token
  /// of the last 64 steps. 0: nothing is in flight, or nothing was measured yet.
  std::chrono::nanoseconds predicted_step() const;

 private:
  struct InFlight {
    plan::StepPlan plan;  // kept only with a log
    uint64_t tokens = 0;
    TimePoint begun;
  };

  engine::Runner& inner_;
  std::optional<plan::PlanLogWriter> log_;
  std::deque<InFlight> in_flight_;
  std::deque<int64_t> token_ns_;  // time a token, of the last steps
  std::atomic<uint64_t> steps_{0};
  std::atomic<uint64_t> oldest_tokens_{0};  // of the oldest step in flight; 0: none
  std::atomic<int64_t> slowest_token_ns_{0};
};

}  // namespace tandem::cluster
