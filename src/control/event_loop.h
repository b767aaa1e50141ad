// One thread that runs tasks in the order they were posted, and a tick in between.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace tandem::control {

class EventLoop {
 public:
  using Task = std::function<void()>;

  /// `tick` runs at this interval, on the loop's thread, from start() on.
  EventLoop(Duration tick_interval, Task tick);
  /// stop()
  ~EventLoop();

  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  void start();

  /// Any thread, also before start(). False once stopped: the task is dropped.
  bool post(Task task);

  /// Runs a task on the loop and waits for it. False when it did not run: the loop is stopped, or
  /// is busy beyond the time (the task may then still run later). Not on the loop's thread.
  bool run(Task task, Duration time);

  /// Finishes the tasks posted so far and joins. Not on the loop's thread.
  void stop();

 private:
  void work();

  const Duration tick_interval_;
  const Task tick_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;   // guarded by mutex_
  bool is_stopped_ = false;  // guarded by mutex_

  std::thread thread_;
};

}  // namespace tandem::control
