// The second of the two clocks: notices an engine that is alive but gets nowhere.
#pragma once

#include <cstdint>
#include <map>

#include "base/clock.h"

namespace tandem::control {

struct ProgressOptions {
  Duration floor = std::chrono::seconds(5);  // the shortest time without a step that is a stall
  int64_t factor = 10;                       // of the predicted step
  Duration first_step = std::chrono::seconds(60);  // until the first step after loading
  Duration silence = std::chrono::seconds(60);     // steps are made, but nothing is reported
};

/// Pure. One thread.
class ProgressClock {
 public:
  explicit ProgressClock(ProgressOptions options) : options_(options) {}

  /// An epoch is ready. is_fresh: some rank has just loaded, so that its first step may be slow.
  void begin_epoch(TimePoint now, bool is_fresh);

  /// A beat of a rank: how many steps it has completed, and what it expects of the one in flight.
  void beat(uint32_t rank, uint64_t steps, Duration predicted_step, TimePoint now);

  /// The engine reported something about a request. That it began is no step yet, so a first step
  /// after loading keeps its time.
  void report(TimePoint now);

  /// Nothing is in flight.
  void idle(TimePoint now);

  /// True when work in flight has not moved for too long. False on every call without work.
  bool is_stalled(TimePoint now) const;

  /// The longest step that some rank expects.
  Duration predicted_step() const;

 private:
  struct RankBeat {
    uint64_t steps = 0;
    Duration predicted{};
  };

  ProgressOptions options_;
  std::map<uint32_t, RankBeat> beats_;
  TimePoint moved_at_{};
  TimePoint reported_at_{};
  bool is_fresh_ = false;
};

}  // namespace tandem::control
