// Time as a parameter, so that schedulers and supervisors run in virtual time under test.
#pragma once

#include <chrono>

namespace tandem {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// A source of monotonic time. Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

/// The machine's steady clock.
class SteadyClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
};

/// Moves only when told to. One thread.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{};
};

}  // namespace tandem
