// The generations that answers are made of: one each, or more where an answer goes on with other
// tokens than those that its generation drew.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "gen/generator.h"

namespace tandem::chat {

/// Numbers generations, and runs tasks that a sink may not: those that submit. Thread-safe.
class Generations {
 public:
  using Task = std::function<void()>;

  /// The generator must outlive it.
  explicit Generations(gen::Generator& generator);
  ~Generations();
  Generations(const Generations&) = delete;
  Generations& operator=(const Generations&) = delete;

  gen::Generator& generator() { return generator_; }
  gen::RequestId new_id() { return next_id_.fetch_add(1); }

  /// Runs the task on a thread of its own, in order. False once stopped.
  bool post(Task task);

  /// Runs what was posted, then takes no more. Not from a task.
  void stop();

 private:
  void work();

  gen::Generator& generator_;
  std::atomic<gen::RequestId> next_id_{1};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;  // guarded by mutex_
  bool stopped_ = false;    // guarded by mutex_
  std::thread thread_;
};

}  // namespace tandem::chat
