// Workers: a few threads that run tasks.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem {

/// Starts threads as tasks come, up to a number, and keeps them. Tasks begin in the order of their
/// coming; they must not throw. Thread-safe.
class Workers {
 public:
  explicit Workers(size_t most) : most_(most) {}
  /// Waits for every task.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void run(std::function<void()> task);

 private:
  void work();

  const size_t most_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace tandem
