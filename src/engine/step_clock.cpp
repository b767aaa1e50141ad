#include "engine/step_clock.h"

namespace tandem::engine {
namespace {

constexpr double kFixed = 16;        // reading the weights costs about as much as these tokens
constexpr double kAttention = 8192;  // positions that cost as much as a token's linear layers
constexpr double kFollow = 0.125;    // weight of the newest step

}  // namespace

double StepClock::work(const plan::StepPlan& plan) {
  double work = kFixed;
  for (const plan::Row& row : plan.rows) {
    work += static_cast<double>(row.tokens.size()) * (1 + row.start / kAttention);
  }
  return work;
}

void StepClock::record(double work, Duration took) {
  const double now = static_cast<double>(took.count()) / work;
  per_unit_ = per_unit_ == 0 ? now : per_unit_ + kFollow * (now - per_unit_);
}

Duration StepClock::predict(double work) const {
  return Duration(static_cast<int64_t>(per_unit_ * work));
}

}  // namespace tandem::engine
