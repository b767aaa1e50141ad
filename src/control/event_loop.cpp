#include "control/event_loop.h"

#include <future>
#include <memory>
#include <utility>

namespace tandem::control {

EventLoop::EventLoop(Duration tick_interval, Task tick)
    : tick_interval_(tick_interval), tick_(std::move(tick)) {}

EventLoop::~EventLoop() { stop(); }

void EventLoop::start() {
  thread_ = std::thread([this] { work(); });
}

bool EventLoop::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_) return false;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

bool EventLoop::run(Task task, Duration time) {
  // Shared: when the time is over, the task outlives this call.
  const auto done = std::make_shared<std::promise<void>>();
  std::future<void> future = done->get_future();
  const bool is_posted = post([task = std::move(task), done] {
    task();
    done->set_value();
  });
  return is_posted && future.wait_for(time) == std::future_status::ready;
}

void EventLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void EventLoop::work() {
  const SteadyClock clock;
  TimePoint tick_at = clock.now();
  std::unique_lock lock(mutex_);
  while (!is_stopped_ || !tasks_.empty()) {
    if (clock.now() >= tick_at && !is_stopped_) {
      lock.unlock();
      tick_();
      tick_at = clock.now() + tick_interval_;
      lock.lock();
    } else if (tasks_.empty()) {
      changed_.wait_until(lock, tick_at);
    } else {
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }
}

}  // namespace tandem::control
