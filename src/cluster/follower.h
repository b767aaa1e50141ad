// Follower: a rank above 0. Executes the plans that rank 0 sends, and decides nothing.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "engine/runner.h"
#include "net/link.h"
#include "plan/frames.h"

namespace tandem::cluster {

/// One epoch after the other: join(), run(), leave(). The engine thread calls all but abort() and
/// has_work().
class Follower {
 public:
  /// Borrows the runner.
  explicit Follower(engine::Runner& local) : local_(local) {}
  ~Follower() { leave(); }

  /// Links to rank 0 of the group and resets the runner to its epoch. Errors: as connect_link(), or
  /// the runner's.
  Status join(const plan::Form& group);

  /// Executes plans and acknowledges each, until the epoch breaks; returns why, after telling rank
  /// 0 if it is still there. Sleeps while no plan comes. Errors: kPeerLost (rank 0 left, or
  /// abort()), kCorrupt (a plan of another epoch or out of sequence), or the runner's.
  Error run();

  /// Drops the link and the plans not executed, and forgets an abort().
  void leave();

  /// Any thread: join() and run() return soon, until leave().
  void abort();

  /// Any thread: plans have come that are not completed.
  bool has_work() const { return unfinished_ > 0; }

 private:
  void receive(std::span<const std::byte> bytes);
  void stop(Error why);
  /// The next plan; none when there is none yet and `wait` is false, or when the epoch broke.
  std::optional<plan::StepPlan> take(bool wait);
  Status issue(const plan::StepPlan& plan);
  Status complete();
  std::optional<Error> fault();

  engine::Runner& local_;
  std::unique_ptr<net::Link> link_;
  uint32_t epoch_ = 0;
  uint64_t next_ = 0;       // sequence of the next plan
  uint64_t completed_ = 0;  // steps of the epoch
  std::atomic<uint64_t> unfinished_{0};
  std::atomic<bool> broken_{false};  // as fault_

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<plan::StepPlan> plans_;
  std::optional<Error> fault_;
};

}  // namespace tandem::cluster
