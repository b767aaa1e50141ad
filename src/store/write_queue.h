// Writes behind: callers that must not wait, such as the generator's thread, leave them here.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "store/blob_table.h"

namespace tandem::store {

struct WriteQueueOptions {
  size_t max_tasks = 4096;
  size_t max_bytes = size_t{64} << 20;             // of what waits
  std::chrono::milliseconds trim_period{600'000};  // how often tables are trimmed
  std::chrono::milliseconds read_wait{10'000};     // how long readers wait for what was left
};

/// Runs writes one after another, in the order they were left, on a thread of its own. What fails
/// is logged, at most once a minute, and counted; it goes no further. Thread-safe.
class WriteQueue {
 public:
  using Task = std::function<Status()>;

  /// `when_idle` is called on that thread whenever nothing waits any more, before settle() knows.
  explicit WriteQueue(WriteQueueOptions options = {}, std::function<void()> when_idle = {});
  /// Runs what waits, then ends.
  ~WriteQueue();
  WriteQueue(const WriteQueue&) = delete;
  WriteQueue& operator=(const WriteQueue&) = delete;

  /// Leaves a write that holds `bytes` of memory. Never blocks on a disk. False: too much waits,
  /// and it is dropped.
  bool post(size_t bytes, Task task);

  /// Leaves a BlobTable::put; `began` as there, by default the time of the call. The database must
  /// outlive the queue.
  bool put(const BlobTable& table,
           std::string owner,
           std::string key,
           std::string value,
           int64_t began = unix_microseconds());

  /// Has `when_idle` called, after what waits.
  void nudge();

  /// Waits until everything left before is written. False: not within the limit.
  bool settle(std::chrono::milliseconds limit);
  /// The same however long it takes.
  void settle();
  /// The same as readers wait, who would miss what is left else. kBusy: not within `read_wait`.
  Status settle_to_read();

  /// Trims the table from time to time, so that it gets no older where nothing is put.
  void keep_trimmed(BlobTable table);

  uint64_t dropped() const;
  uint64_t failed() const;

 private:
  struct Waiting {
    size_t bytes = 0;
    Task task;
  };

  void run();
  void run_one(Waiting next, bool is_last);
  void trim_tables();
  void complain(const std::string& why);

  const WriteQueueOptions options_;
  const std::function<void()> when_idle_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  std::vector<BlobTable> trimmed_;
  size_t waiting_bytes_ = 0;
  uint64_t left_ = 0;  // tasks taken in, ever
  uint64_t done_ = 0;
  uint64_t dropped_ = 0;
  uint64_t failed_ = 0;
  uint64_t untold_ = 0;  // failures since the last line of the log
  std::chrono::steady_clock::time_point last_told_{};
  bool stopping_ = false;
  std::thread worker_;  // last: it uses what is above
};

}  // namespace tandem::store
