#include "store/write_queue.h"

#include <utility>

#include "base/log.h"

namespace tandem::store {

WriteQueue::WriteQueue(WriteQueueOptions options, std::function<void()> when_idle)
    : options_(options), when_idle_(std::move(when_idle)), worker_([this] { run(); }) {}

WriteQueue::~WriteQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

bool WriteQueue::post(size_t bytes, Task task) {
  {
    const std::lock_guard lock(mutex_);
    const bool full =
        waiting_.size() >= options_.max_tasks || waiting_bytes_ + bytes > options_.max_bytes;
    if (full) {
      ++dropped_;
      complain("writes wait for the disk, and no more can");
      return false;
    }
    waiting_.push_back({.bytes = bytes, .task = std::move(task)});
    waiting_bytes_ += bytes;
    ++left_;
  }
  changed_.notify_all();
  return true;
}

void WriteQueue::nudge() {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({.bytes = 0, .task = [] { return Status(); }});
    ++left_;
  }
  changed_.notify_all();
}

bool WriteQueue::put(
    const BlobTable& table, std::string owner, std::string key, std::string value, int64_t began) {
  const size_t bytes = owner.size() + key.size() + value.size();
  return post(bytes, [table, began, owner = std::move(owner), key = std::move(key),
                      value = std::move(value)] { return table.put(owner, key, value, began); });
}

bool WriteQueue::settle(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  const uint64_t wanted = left_;
  return changed_.wait_for(lock, limit, [&] { return done_ >= wanted; });
}

void WriteQueue::settle() {
  std::unique_lock lock(mutex_);
  const uint64_t wanted = left_;
  changed_.wait(lock, [&] { return done_ >= wanted; });
}

Status WriteQueue::settle_to_read() {
  if (settle(options_.read_wait)) return {};
  return Error{ErrorCode::kBusy,
               "what was to be written to disk before is not written yet: try again"};
}

void WriteQueue::keep_trimmed(BlobTable table) {
  const std::lock_guard lock(mutex_);
  trimmed_.push_back(std::move(table));
}

uint64_t WriteQueue::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

uint64_t WriteQueue::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

void WriteQueue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    const bool woken = changed_.wait_for(lock, options_.trim_period,
                                         [&] { return stopping_ || !waiting_.empty(); });
    if (!woken) {
      lock.unlock();
      trim_tables();
      lock.lock();
      continue;
    }
    if (waiting_.empty()) return;  // stopping
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    const bool is_last = waiting_.empty();
    lock.unlock();
    run_one(std::move(next), is_last);
    lock.lock();
  }
}

void WriteQueue::run_one(Waiting next, bool is_last) {
  const Status written = next.task();
  next.task = nullptr;  // outside of the lock
  if (is_last && when_idle_) when_idle_();
  {
    const std::lock_guard lock(mutex_);
    waiting_bytes_ -= next.bytes;
    ++done_;
    if (!written) {
      ++failed_;
      complain(written.error().message);
    }
  }
  changed_.notify_all();
}

void WriteQueue::trim_tables() {
  std::vector<BlobTable> tables;
  {
    const std::lock_guard lock(mutex_);
    tables = trimmed_;
  }
  for (const BlobTable& table : tables) {
    if (const Status trimmed = table.trim(); !trimmed) {
      const std::lock_guard lock(mutex_);
      complain(trimmed.error().message);
    }
  }
  if (when_idle_) when_idle_();
}

/// Under the lock.
void WriteQueue::complain(const std::string& why) {
  ++untold_;
  const auto now = std::chrono::steady_clock::now();
  const bool first = last_told_ == std::chrono::steady_clock::time_point{};
  if (!first && now - last_told_ < std::chrono::minutes(1)) return;
  TANDEM_LOG(kWarn, "{} of what should be kept was lost: {}", untold_, why);
  untold_ = 0;
  last_told_ = now;
}

}  // namespace tandem::store
