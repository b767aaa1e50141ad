// Fabric: a byte stream in each direction between every two ranks, without blocking, and a way to
// sleep until one of them may move. Shared memory and TCP implement it; Exchange drives it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/tag.h"

namespace tandem::comm {

/// Why a group is dead, as told to the other ranks.
enum class Fault : uint8_t { kNone = 0, kPeerLost = 1, kDeadline = 2, kCorrupt = 3 };

Fault to_fault(ErrorCode code);
ErrorCode to_code(Fault fault);

/// What one rank waits for.
struct Interest {
  uint32_t peer = 0;
  bool read = false;
  bool write = false;
};

/// What is counted per link. Owned by the thread that makes the calls.
struct LinkState {
  uint64_t sent = 0;      // messages begun
  uint64_t received = 0;  // messages begun
  bool open = false;      // a message of ours was begun and is not complete
};

/// kPeerLost, naming the peer.
Error gone_peer(uint32_t peer);

class Fabric {
 public:
  Fabric(uint32_t rank, uint32_t size, uint32_t epoch)
      : rank_(rank), size_(size), epoch_(epoch), links_(size) {}
  virtual ~Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  uint32_t epoch() const { return epoch_; }
  LinkState& link(uint32_t peer) { return links_[peer]; }

  /// Sends what fits now of head, then body; returns the bytes taken. kPeerLost if the peer is
  /// gone.
  virtual Result<size_t> write(uint32_t peer,
                               std::span<const std::byte> head,
                               std::span<const std::byte> body) = 0;

  /// Receives what is there now into head, then body. kPeerLost if the peer is gone and nothing is
  /// left to read.
  virtual Result<size_t> read(uint32_t peer,
                              std::span<std::byte> head,
                              std::span<std::byte> body) = 0;

  /// Taken before looking at the links; wait() returns at once if one moved since.
  virtual uint32_t ticket() = 0;

  /// Sleeps until one of the links may move, interrupt() was called, or `longest` is over.
  virtual void wait(uint32_t ticket,
                    std::span<const Interest> interests,
                    std::chrono::milliseconds longest) = 0;

  /// How long to look again before it is worth sleeping. Zero when ranks outnumber the cores.
  virtual std::chrono::nanoseconds spin() const = 0;

  /// Tells every peer as well as it can that this group is dead. Calling thread only.
  virtual void tell(Fault fault) = 0;

  /// What a peer told outside the streams.
  virtual Fault told() const { return Fault::kNone; }

  /// Any thread: ends the streams and wakes whoever sleeps in wait(), here and on the peers.
  virtual void interrupt() = 0;

  /// Set by abort(), from any thread.
  std::atomic<bool> aborted = false;

  /// The first error, after which every call fails. Calling thread only.
  std::optional<Error> dead;

 private:
  uint32_t rank_;
  uint32_t size_;
  uint32_t epoch_;
  std::vector<LinkState> links_;
};

}  // namespace tandem::comm
