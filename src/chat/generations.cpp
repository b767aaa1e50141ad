#include "chat/generations.h"

#include <utility>

namespace tandem::chat {

Generations::Generations(gen::Generator& generator)
    : generator_(generator), thread_([this] { work(); }) {}

Generations::~Generations() { stop(); }

bool Generations::post(Task task) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return false;
  tasks_.push_back(std::move(task));
  changed_.notify_all();
  return true;
}

void Generations::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Generations::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace tandem::chat
