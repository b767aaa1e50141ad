// LockstepRunner: one Runner made of this rank's and the followers': every rank executes the same
// plans, and what they executed is compared.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/follower_links.h"
#include "engine/runner.h"
#include "plan/frames.h"

namespace tandem::cluster {

struct LockstepOptions {
  /// How long a follower may lag behind this rank, or `slack` times what the step took here if that
  /// is longer.
  std::chrono::milliseconds deadline{5000};
  uint32_t slack = 10;
  /// The epoch broke: called once an epoch, on any thread, also when no call of the runner is under
  /// way. Must not call back.
  std::function<void(const Error&)> on_fault = {};
};

/// Rank 0's runner. A step's state hashes are compared as followers report them: at the latest when
/// `depth` more steps have completed here. Errors name rank and sequence: kCorrupt (a follower
/// executed something else), kPeerLost (a link broke), kDeadline (a follower is silent), or what a
/// follower reported.
class LockstepRunner final : public engine::Runner {
 public:
  /// Borrows both.
  LockstepRunner(engine::Runner& local, FollowerLinks& links, LockstepOptions options);
  ~LockstepRunner() override;

  /// Who the next reset() is to meet. Any thread. An abort() from here on is for this group's
  /// epoch, also when it comes before reset().
  void prepare(plan::Form group);

  engine::RunnerInfo info() const override { return local_.info(); }
  Status issue(const plan::StepPlan& plan) override;
  Result<engine::StepResult> complete() override;
  /// Also meets the followers of the group given to prepare(); kConflict when it is of another
  /// epoch.
  Status reset(uint32_t epoch) override;
  void abort() override;

 private:
  struct Follower {
    uint64_t acked = 0;               // steps
    std::deque<uint64_t> unverified;  // hashes of acked steps not yet completed here
  };

  void receive(uint32_t rank, const plan::Frame& frame);
  // With mutex_ held.
  Status take_ack(uint32_t rank, const plan::Ack& ack);
  Status take_hash(uint64_t hash);
  Status verify(uint32_t rank, uint64_t sequence, uint64_t hash) const;
  Status wait_for_followers(std::unique_lock<std::mutex>& lock, Duration step);
  uint64_t acked_by_all() const;
  bool note(const Error& why);  // true when it is the epoch's first

  /// Keeps the epoch's first fault and unblocks everybody. Without mutex_ held.
  Error fail(const Error& why);

  engine::Runner& local_;
  FollowerLinks& links_;
  const LockstepOptions options_;
  std::deque<TimePoint> issued_at_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  plan::Form group_;
  bool aborted_ = false;  // the group's epoch
  std::optional<Error> fault_ = Error{ErrorCode::kUnavailable, "no group has formed"};
  std::vector<Follower> followers_;  // by rank - 1
  uint64_t issued_ = 0;
  uint64_t completed_ = 0;
  std::deque<uint64_t> hashes_;  // of the last steps completed here, those that not all acked
};

}  // namespace tandem::cluster
