#include "cluster/follower.h"

#include <fmt/format.h>

#include <utility>

namespace tandem::cluster {

Status Follower::join(const plan::Form& group) {
  if (group.plan_addresses.size() != group.size || group.rank == 0 || group.rank >= group.size) {
    return Error{ErrorCode::kInvalid,
                 fmt::format("a group of {} ranks gives {} plan addresses to rank {}", group.size,
                             group.plan_addresses.size(), group.rank)};
  }
  if (const auto why = fault()) return *why;
  epoch_ = group.epoch;
  auto link =
      net::connect_link(group.plan_addresses[0], {.secret = group.secret}, group.timeout, &broken_);
  if (const auto why = fault()) return *why;
  if (!link) return link.error();
  link_ = *std::move(link);
  link_->start({.on_frame = [this](std::span<const std::byte> bytes) { receive(bytes); },
                .on_closed =
                    [this](const Error& why) {
                      stop({ErrorCode::kPeerLost, fmt::format("rank 0 is lost: {}", why.message)});
                    }});
  Status joined = link_->send(plan::encode(plan::Join{.rank = group.rank, .epoch = group.epoch}));
  if (joined) joined = local_.reset(epoch_);
  if (const auto why = fault(); joined && why) return *why;
  return joined;
}

Error Follower::run() {
  const uint64_t depth = std::max<uint64_t>(1, local_.info().depth);
  for (;;) {
    Status done;
    const uint64_t in_flight = next_ - completed_;
    std::optional<plan::StepPlan> plan;
    if (in_flight < depth) plan = take(in_flight == 0);
    if (const auto why = fault()) return *why;
    done = plan ? issue(*plan) : complete();
    if (done) continue;
    if (const auto why = fault()) return *why;  // the cause, if the runner was only aborted
    (void)link_->send(
        plan::encode(plan::FollowerFault{.sequence = completed_, .error = done.error()}));
    return done.error();
  }
}

void Follower::leave() {
  link_.reset();
  next_ = completed_ = 0;
  unfinished_ = 0;
  const std::lock_guard lock(mutex_);
  plans_.clear();
  fault_.reset();
  broken_ = false;
}

void Follower::abort() { stop({ErrorCode::kPeerLost, "the epoch was aborted"}); }

void Follower::receive(std::span<const std::byte> bytes) {
  auto frame = plan::decode_frame(bytes);
  if (!frame) return stop(frame.error());
  auto* execute = std::get_if<plan::Execute>(&*frame);
  if (!execute) {
    return stop({ErrorCode::kCorrupt,
                 fmt::format("expected a plan from rank 0, got {}", plan::name(*frame))});
  }
  ++unfinished_;
  const std::lock_guard lock(mutex_);
  plans_.push_back(std::move(execute->plan));
  changed_.notify_all();
}

void Follower::stop(Error why) {
  {
    const std::lock_guard lock(mutex_);
    if (fault_) return;
    fault_ = std::move(why);
    broken_ = true;
    changed_.notify_all();
  }
  local_.abort();
}

std::optional<plan::StepPlan> Follower::take(bool wait) {
  std::unique_lock lock(mutex_);
  if (wait) changed_.wait(lock, [this] { return fault_ || !plans_.empty(); });
  if (fault_ || plans_.empty()) return std::nullopt;
  plan::StepPlan plan = std::move(plans_.front());
  plans_.pop_front();
  return plan;
}

Status Follower::issue(const plan::StepPlan& plan) {
  if (plan.epoch != epoch_ || plan.sequence != next_) {
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("got the plan of epoch {}, sequence {}; expected epoch {}, sequence {}",
                    plan.epoch, plan.sequence, epoch_, next_)};
  }
  ++next_;
  return local_.issue(plan);
}

Status Follower::complete() {
  const auto result = local_.complete();
  if (!result) return result.error();
  if (result->sequence != completed_) {
    return Error{ErrorCode::kInternal, fmt::format("the runner completed sequence {}, expected {}",
                                                   result->sequence, completed_)};
  }
  ++completed_;
  --unfinished_;
  return link_->send(
      plan::encode(plan::Ack{.sequence = result->sequence, .state_hash = result->state_hash}));
}

std::optional<Error> Follower::fault() {
  const std::lock_guard lock(mutex_);
  return fault_;
}

}  // namespace tandem::cluster
