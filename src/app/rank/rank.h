// Rank: the process tandem-rank as an object: control link, beats, loading, one role, one end.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/rank/rank_model.h"
#include "app/rank/role.h"
#include "base/clock.h"
#include "cluster/follower_links.h"
#include "net/link.h"

namespace tandem::app {

/// What tandem-rank exits with.
enum class RankExit : int {
  kDone = 0,        // told to shut down
  kInternal = 1,    // a defect
  kUsage = 2,       // the command line or the secret is wrong
  kHeadGone = 3,    // the control link closed, or the head fell silent
  kNoHead = 4,      // the head could not be reached, or refused this rank
  kLoadFailed = 5,  // the model could not be loaded
  kStuck = 6,       // told to end, and something did not
};

struct RankConfig {
  uint32_t rank = 0;
  uint32_t size = 1;
  std::string control = {};
  std::vector<std::byte> secret = {};
  std::string instance = {};
  std::string build = {};
  std::string listen_host = "127.0.0.1";
  std::string plan_log = {};
  bool prefix_reuse = true;  // see schedule::SchedulerOptions
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds beat_interval{1000};
  std::chrono::milliseconds head_timeout{10'000};
  /// Ending takes at most this long; then `give_up` is called, which does not return in a process.
  std::chrono::milliseconds end_timeout{1500};
  std::function<void(RankExit)> give_up = {};
};

/// Threads: the caller of run() loads and waits; the control link's thread receives and never
/// waits; the beat thread says every second that the process lives, whatever the engine does.
class Rank {
 public:
  Rank(RankConfig config, std::unique_ptr<RankModel> model);
  ~Rank();

  /// Connects, says Hello, loads, and serves until told to end or the head is gone. Once.
  RankExit run();

 private:
  std::optional<RankExit> connect();
  std::optional<RankExit> load();
  void receive(std::span<const std::byte> bytes);
  void hold(plan::Frame frame);  // with mutex_ held: no role yet
  void dispatch(Role& role, plan::Frame frame);
  Status check(const plan::Form& form) const;
  void say(const plan::Frame& frame);
  void end(RankExit how);
  void beat();
  plan::Beat status();
  plan::Figures figures();

  const RankConfig config_;
  const std::unique_ptr<RankModel> model_;
  std::unique_ptr<cluster::FollowerLinks> followers_;  // rank 0 only
  std::atomic<TimePoint> heard_at_{};

  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<plan::Frame> held_;  // came while the model was loading
  std::unique_ptr<Role> role_;

  std::mutex end_mutex_;  // may be taken with mutex_ held
  std::condition_variable changed_;
  // Guarded by end_mutex_.
  std::optional<RankExit> ended_;
  bool is_over_ = false;  // nothing is left to wait for

  std::unique_ptr<net::Link> head_;
  std::thread beats_;
};

}  // namespace tandem::app
