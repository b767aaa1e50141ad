// StateHash: a running hash of what a rank really executed, equal on every rank that did the same.
#pragma once

#include <cstdint>

#include "plan/step_plan.h"
#include "plan/wire.h"

namespace tandem::plan {

/// Chained over the steps of an epoch. A runner feeds it what it executed, not what it was asked
/// to: begin(), then each copy and row in the order they ran, then end(). One thread.
class StateHash {
 public:
  /// Forgets the chain: ranks of one epoch start equal, and differ from every other epoch.
  void reset(uint32_t epoch);

  void begin(uint64_t sequence);
  void copy(const PageCopy& copy);
  void window_copy(const PageCopy& copy);
  /// The row as it ran: with the token that was drawn in the place of kDrawn. `length` is the
  /// number of positions the request's keys and values cover after the row.
  void row(const Row& row, uint32_t length);
  /// Ends the step and returns the chain's value.
  uint64_t end();

  /// The whole step when it was executed as planned, and nothing in it is kDrawn.
  uint64_t step(const StepPlan& plan);

  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
  Writer executed_;  // of the step that has begun
};

}  // namespace tandem::plan
