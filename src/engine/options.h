// What an engine is told, and what it says of itself.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "gen/constraint.h"
#include "schedule/scheduler.h"

namespace tandem::engine {

struct EngineOptions {
  /// Policy; the runner's sizes in it are filled in by the engine.
  schedule::SchedulerOptions schedule = {};
  /// Requests that may wait beyond those that run.
  uint32_t queue = 256;
  /// Requests of an epoch that ends (a fault, reset(), suspend()) get no last event: their owner
  /// submits them again with what was emitted. Otherwise they get Failed.
  bool resumable = false;
  /// What requests with a grammar are bound by, borrowed; null: they are refused.
  gen::ConstraintFactory* constraints = nullptr;
  /// The runner failed: the engine is suspended until reset(). Called on the engine's thread after
  /// the epoch's requests were dropped; must not block.
  std::function<void(Error)> on_fault = {};
};

/// A snapshot for heartbeats and metrics.
struct EngineStats {
  uint32_t epoch = 0;
  bool serving = false;            // not suspended
  bool busy = false;               // requests are live that steps go on with
  uint32_t live = 0;               // requests accepted and not ended
  uint32_t awaiting_grammars = 0;  // of those, the ones that wait for a grammar or a mask
  uint32_t steps_in_flight = 0;    // issued and not completed
  uint64_t steps = 0;              // completed since construction, over all epochs
  uint64_t rows = 0;               // of completed steps
  uint64_t answer_tokens = 0;      // delivered
  uint64_t prompt_tokens = 0;      // computed or reused, reported as Prefilled
  Duration step_time{};            // of completed steps, each from its issue or the one before it
  std::vector<uint64_t> step_counts = {};  // completed steps by that time, under token_times()
  Duration last_step{};                    // issue to completion
  Duration predicted_step{};  // of the oldest step in flight; 0: none, or not known yet
  /// Its totals are of all epochs.
  schedule::SchedulerCounts schedule = {};
};

}  // namespace tandem::engine
