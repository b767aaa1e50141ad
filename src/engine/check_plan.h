// What any runner asks of a plan before it executes it.
#pragma once

#include <cstddef>
#include <functional>

#include "engine/runner.h"

namespace tandem::engine {

/// Where a runner stands when a plan comes.
struct PlanTurn {
  uint32_t epoch = 0;
  uint64_t sequence = 0;  // the one that is due
  size_t in_flight = 0;   // steps issued and not completed
};

/// Whether the step issued last drew a token of this request.
using DrewLast = std::function<bool(plan::RequestId)>;

/// Whether the row begins with the token that its request's row before drew.
inline bool goes_on(const plan::Row& row) {
  return row.tokens.size() == 1 && row.tokens[0] == plan::kDrawn;
}

/// kInvalid, with the numbers, when the plan does not fit a runner of these sizes at this turn, or
/// breaks a rule of plan/step_plan.h. A plan of copies alone fits; one of nothing does not.
Status check_plan(const plan::StepPlan& plan,
                  const RunnerInfo& info,
                  const PlanTurn& turn,
                  const DrewLast& drew_last);

}  // namespace tandem::engine
