#include "cluster/lockstep.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tandem::cluster {

LockstepRunner::LockstepRunner(engine::Runner& local, FollowerLinks& links, LockstepOptions options)
    : local_(local), links_(links), options_(std::move(options)) {}

LockstepRunner::~LockstepRunner() { links_.close(); }

void LockstepRunner::prepare(plan::Form group) {
  const std::lock_guard lock(mutex_);
  group_ = std::move(group);
  aborted_ = false;
}

Status LockstepRunner::reset(uint32_t epoch) {
  links_.close();  // nothing of the old epoch comes after this
  plan::Form group;
  {
    const std::lock_guard lock(mutex_);
    if (group_.epoch != epoch) {
      return Error{ErrorCode::kConflict, fmt::format("epoch {} is to begin, but the group is of {}",
                                                     epoch, group_.epoch)};
    }
    if (aborted_) return Error{ErrorCode::kPeerLost, fmt::format("epoch {} was aborted", epoch)};
    group = group_;
    fault_.reset();
    followers_.assign(group_.size - 1, {});
    issued_ = completed_ = 0;
    hashes_.clear();
  }
  issued_at_.clear();
  Status met = links_.meet(
      group,
      {.on_frame = [this](uint32_t rank, const plan::Frame& frame) { receive(rank, frame); },
       .on_lost =
           [this](uint32_t rank, const Error& why) {
             fail({ErrorCode::kPeerLost, fmt::format("rank {} is lost: {}", rank, why.message)});
           }});
  if (met) met = local_.reset(epoch);
  const std::lock_guard lock(mutex_);
  if (!met) note(met.error());
  if (fault_) return *fault_;
  return {};
}

Status LockstepRunner::issue(const plan::StepPlan& plan) {
  {
    const std::lock_guard lock(mutex_);
    if (fault_) return *fault_;
    ++issued_;
  }
  issued_at_.push_back(SteadyClock().now());
  Status done;
  if (!followers_.empty()) done = links_.send(plan::encode_execute(plan));
  if (done) done = local_.issue(plan);
  if (!done) return fail(done.error());
  return {};
}

Result<engine::StepResult> LockstepRunner::complete() {
  auto result = local_.complete();
  Duration step{0};
  if (!issued_at_.empty()) {
    step = SteadyClock().now() - issued_at_.front();
    issued_at_.pop_front();
  }
  if (!result) return fail(result.error());
  std::unique_lock lock(mutex_);
  Status agreed = take_hash(result->state_hash);
  if (agreed) agreed = wait_for_followers(lock, step);
  if (agreed) return result;
  lock.unlock();
  return fail(agreed.error());
}

void LockstepRunner::abort() {
  {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    note({ErrorCode::kPeerLost, "the step was aborted"});
  }
  local_.abort();
  links_.abort();
}

Status LockstepRunner::wait_for_followers(std::unique_lock<std::mutex>& lock, Duration step) {
  if (followers_.empty()) return {};
  const uint64_t depth = std::max<uint64_t>(1, info().depth);
  const uint64_t needed = completed_ < depth ? 0 : completed_ - depth;
  const Duration patience = std::max<Duration>(options_.deadline, options_.slack * step);
  const bool done =
      changed_.wait_for(lock, patience, [&] { return fault_ || acked_by_all() >= needed; });
  if (fault_) return *fault_;
  if (done) return {};
  uint32_t silent = 1;
  while (followers_[silent - 1].acked >= needed) ++silent;
  return Error{ErrorCode::kDeadline,
               fmt::format("rank {} has not completed sequence {} within {} ms of rank 0", silent,
                           followers_[silent - 1].acked,
                           std::chrono::ceil<std::chrono::milliseconds>(patience).count())};
}

void LockstepRunner::receive(uint32_t rank, const plan::Frame& frame) {
  if (const auto* fault = std::get_if<plan::FollowerFault>(&frame)) {
    fail({fault->error.code, fmt::format("rank {} failed at sequence {}: {}", rank, fault->sequence,
                                         fault->error.message)});
    return;
  }
  const auto* ack = std::get_if<plan::Ack>(&frame);
  if (!ack) {
    fail({ErrorCode::kCorrupt,
          fmt::format("rank {} sent {} on a plan link", rank, plan::name(frame))});
    return;
  }
  Status taken;
  {
    const std::lock_guard lock(mutex_);
    if (!fault_) taken = take_ack(rank, *ack);
    changed_.notify_all();
  }
  if (!taken) fail(taken.error());
}

Status LockstepRunner::take_ack(uint32_t rank, const plan::Ack& ack) {
  Follower& follower = followers_[rank - 1];
  if (ack.sequence != follower.acked || ack.sequence >= issued_) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("rank {} acknowledged sequence {}, expected {} of {} issued", rank,
                             ack.sequence, follower.acked, issued_)};
  }
  ++follower.acked;
  Status same;
  if (ack.sequence >= completed_) {
    follower.unverified.push_back(ack.state_hash);
  } else {
    same = verify(rank, ack.sequence, ack.state_hash);
  }
  while (!hashes_.empty() && completed_ - hashes_.size() < acked_by_all()) hashes_.pop_front();
  return same;
}

Status LockstepRunner::take_hash(uint64_t hash) {
  const uint64_t sequence = completed_++;
  hashes_.push_back(hash);
  Status same;
  for (size_t i = 0; i < followers_.size(); ++i) {
    auto& unverified = followers_[i].unverified;
    if (unverified.empty()) continue;
    if (same) same = verify(static_cast<uint32_t>(i + 1), sequence, unverified.front());
    unverified.pop_front();
  }
  if (acked_by_all() >= completed_) hashes_.clear();
  return same;
}

Status LockstepRunner::verify(uint32_t rank, uint64_t sequence, uint64_t hash) const {
  const uint64_t ours = hashes_[sequence - (completed_ - hashes_.size())];
  if (hash == ours) return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("rank {} executed something else at sequence {}: state hash {:016x}, "
                           "expected {:016x}",
                           rank, sequence, hash, ours)};
}

uint64_t LockstepRunner::acked_by_all() const {
  uint64_t least = issued_;
  for (const Follower& follower : followers_) least = std::min(least, follower.acked);
  return least;
}

bool LockstepRunner::note(const Error& why) {
  if (fault_) return false;
  fault_ = why;
  changed_.notify_all();
  return true;
}

Error LockstepRunner::fail(const Error& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!note(why)) return *fault_;
  }
  local_.abort();
  if (options_.on_fault) options_.on_fault(why);
  return why;
}

}  // namespace tandem::cluster
