#include "cluster/recording_runner.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace tandem::cluster {
namespace {

constexpr size_t kStepsRemembered = 64;

}  // namespace

RecordingRunner::RecordingRunner(engine::Runner& inner, std::optional<plan::PlanLogWriter> log)
    : inner_(inner), log_(std::move(log)) {}

Status RecordingRunner::issue(const plan::StepPlan& plan) {
  InFlight step{.plan = {}, .tokens = 0, .begun = SteadyClock().now()};
  for (const plan::Row& row : plan.rows) step.tokens += row.tokens.size();
  step.tokens = std::max<uint64_t>(step.tokens, 1);
  if (log_) step.plan = plan;
  if (in_flight_.empty()) oldest_tokens_ = step.tokens;
  in_flight_.push_back(std::move(step));
  const Status issued = inner_.issue(plan);
  if (!issued) {
    in_flight_.pop_back();
    if (in_flight_.empty()) oldest_tokens_ = 0;
  }
  return issued;
}

Result<engine::StepResult> RecordingRunner::complete() {
  auto result = inner_.complete();
  if (!result || in_flight_.empty()) return result;
  const InFlight step = std::move(in_flight_.front());
  in_flight_.pop_front();
  token_ns_.push_back((SteadyClock().now() - step.begun).count() /
                      static_cast<int64_t>(step.tokens));
  if (token_ns_.size() > kStepsRemembered) token_ns_.pop_front();
  slowest_token_ns_ = *std::max_element(token_ns_.begin(), token_ns_.end());
  oldest_tokens_ = in_flight_.empty() ? 0 : in_flight_.front().tokens;
  ++steps_;
  if (log_) {
    const Status kept = log_->append({.plan = step.plan, .state_hash = result->state_hash});
    if (!kept) {
      TANDEM_LOG(kError, "the plan log ends here: {}", kept.error().message);
      log_.reset();
    }
  }
  return result;
}

Status RecordingRunner::reset(uint32_t epoch) {
  in_flight_.clear();
  oldest_tokens_ = 0;
  return inner_.reset(epoch);
}

std::chrono::nanoseconds RecordingRunner::predicted_step() const {
  return std::chrono::nanoseconds(slowest_token_ns_ * static_cast<int64_t>(oldest_tokens_.load()));
}

}  // namespace tandem::cluster
