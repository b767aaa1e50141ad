// The turns that are remembered, bounded in number, size and age: the least recently used go first.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/unix_time.h"
#include "replay/turn.h"

namespace tandem::replay {

struct MemoryLimits {
  size_t max_bytes = size_t{64} << 20;
  size_t max_turns = 4096;
  std::chrono::seconds max_age = std::chrono::hours(24);  // since it was asked for
};

/// What outlives the process. Thread-safe.
class Backing {
 public:
  virtual ~Backing() = default;
  /// Leaves the value under the key to be written, unless all was purged since it began
  /// (microseconds of Unix time). Must not wait for a disk.
  virtual void put(const std::string& owner,
                   const std::string& key,
                   std::string value,
                   int64_t began) = 0;
  /// Nothing when there is none, or it cannot be read.
  virtual std::optional<std::string> get(const std::string& owner, const std::string& key) = 0;
};

/// What happened to messages of the assistant in histories.
struct Counts {
  std::atomic<uint64_t> spliced{0};    // shown as the tokens that were drawn
  std::atomic<uint64_t> unknown{0};    // not remembered
  std::atomic<uint64_t> edited{0};     // remembered, but the client says something else
  std::atomic<uint64_t> elsewhere{0};  // the prompt in front of it is another one
  std::atomic<uint64_t> not_shown{0};  // the template leaves out a part of it, such as thinking
  std::atomic<uint64_t> tokens{0};     // of the spliced ones
  std::atomic<uint64_t> thoughts{0};   // that a client had dropped and that were put back
};

/// Owners see nothing of each other's. Thread-safe.
class Memory {
 public:
  /// The clock must outlive it. `unix_now`: microseconds of Unix time, for the age of what was
  /// remembered before.
  Memory(MemoryLimits limits,
         const Clock& clock,
         std::unique_ptr<Backing> backing = nullptr,
         std::function<int64_t()> unix_now = unix_microseconds);

  /// Remembers a turn under its keys, of which the first is its own; under each it takes the place
  /// of an earlier turn. One that is over the bounds by itself is not remembered. `outlives`:
  /// whether it is left to the backing too.
  void remember(const std::string& owner,
                Turn turn,
                const std::vector<std::string>& keys,
                bool outlives);

  /// Null when none is remembered under the key, or it is too old. Counts as used.
  std::shared_ptr<const Turn> find(const std::string& owner, const std::string& key);

  size_t turns() const;
  size_t bytes() const;
  Counts& counts() { return counts_; }

 private:
  struct Entry {
    std::shared_ptr<const Turn> turn;
    std::vector<std::string> names;  // owner and key
    size_t bytes = 0;
    TimePoint began{};
  };
  using Entries = std::list<Entry>;

  void insert(std::shared_ptr<const Turn> turn, std::vector<std::string> names);
  std::shared_ptr<const Turn> find_here(const std::string& name);
  std::shared_ptr<const Turn> find_behind(const std::string& owner, const std::string& key);
  void drop(Entries::iterator entry);
  Duration age_of(const Turn& turn) const;

  const MemoryLimits limits_;
  const Clock& clock_;
  const std::unique_ptr<Backing> backing_;
  const std::function<int64_t()> unix_now_;
  Counts counts_;

  mutable std::mutex mutex_;
  Entries entries_;  // the last used first
  std::unordered_map<std::string, Entries::iterator> by_name_;
  size_t bytes_ = 0;
};

}  // namespace tandem::replay
