// StepClock: how long steps take, and how long the next one should.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "plan/step_plan.h"

namespace tandem::engine {

/// Learns nanoseconds per unit of work from completed steps. One thread.
class StepClock {
 public:
  /// Work of a step: its tokens, dearer the more positions they attend to, plus a fixed part.
  static double work(const plan::StepPlan& plan);

  /// A step of this work took so long.
  void record(double work, Duration took);

  /// 0 before the first record.
  Duration predict(double work) const;

 private:
  double per_unit_ = 0;  // nanoseconds, a moving average
};

}  // namespace tandem::engine
