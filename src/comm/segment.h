// Segment: the memory that ranks of one host share. It has no name: its descriptor is passed over
// an authenticated socket, so nothing is left behind by a crash and no stranger can open it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "comm/socket.h"

namespace tandem::comm {

/// Bytes from one rank to another. The writer moves head, the reader tail; neither ever wraps.
struct Ring {
  static constexpr size_t kCapacity = size_t{128} << 10U;

  alignas(64) std::atomic<uint64_t> head;
  alignas(64) std::atomic<uint64_t> tail;
  alignas(64) std::byte data[kCapacity];
};

/// Where a rank sleeps.
struct Bell {
  alignas(64) std::atomic<uint32_t> count;     // bumped whenever one of its links moved
  alignas(64) std::atomic<uint32_t> sleeping;  // whether a bump must be followed by a wake
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);

class Segment {
 public:
  static constexpr uint32_t kMostRanks = 64;

  static Result<std::shared_ptr<Segment>> create(uint32_t size);
  static Result<std::shared_ptr<Segment>> map(Fd fd, uint32_t size);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  int fd() const { return fd_.get(); }

  /// The Fault that ended the group; zero while it lives.
  std::atomic<uint32_t>& fault();
  Bell& bell(uint32_t rank);
  Ring& ring(uint32_t from, uint32_t to);

 private:
  Segment(Fd fd, std::byte* base, uint32_t size) : fd_(std::move(fd)), base_(base), size_(size) {}

  Fd fd_;
  std::byte* base_;
  uint32_t size_;
};

}  // namespace tandem::comm
