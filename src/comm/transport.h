// Transport: the collectives that ranks of one instance need, over shared memory or TCP. MLX-free;
// tensor/ wraps it as an MLX distributed group.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tandem::comm {

enum class Dtype : uint8_t { kFloat32, kBfloat16, kFloat16 };

enum class Kind : uint8_t { kSharedMemory, kTcp };

/// Where and as whom to connect. Every rank of a group passes the same values but for `rank` and
/// `listen_fd`.
///
/// Ports: a rank may bind port 0 itself (listen_on() in comm/socket.h), tell its address to the
/// others by other means, and connect once all addresses are known: it passes the listening socket
/// as `listen_fd`. Peers that come early wait in its backlog.
struct Options {
  Kind kind = Kind::kSharedMemory;
  uint32_t rank = 0;
  uint32_t size = 1;
  uint32_t epoch = 0;
  std::string name = {};                    // shared memory: a name unique to instance and epoch
  std::vector<std::string> addresses = {};  // TCP: "host:port" of each rank's data listener
  int listen_fd = -1;  // TCP: this rank's socket, already listening; connect() closes it. -1: bind
                       // addresses[rank]
  std::vector<std::byte> secret =
      {};  // authenticates both sides, not empty if size > 1; never logged
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds deadline{5'000};  // longest time without a byte moving, see below
};

/// One group of ranks. Calls come from one thread, in the same order on every rank, except abort().
/// Each message is tagged (epoch, sequence, operation, bytes): ranks that disagree get kCorrupt,
/// never wrong numbers. After any error the group is dead: every later call returns an error at
/// once. Errors: kPeerLost (closed or aborted), kDeadline (silent), kCorrupt (tag mismatch).
/// A call fails with kDeadline when nothing has moved for `deadline`; one that moves may take
/// longer. Two messages with equal tags cannot be told apart: the order of calls must not depend on
/// the rank. send() returns once the message is buffered.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;

  /// data[i] becomes the sum over ranks, added in rank order in float32 and rounded once to the
  /// type: an element's bits do not depend on its place in the message. `count` elements, equal on
  /// all ranks.
  virtual Status all_sum(void* data, size_t count, Dtype dtype) = 0;

  /// out receives every rank's part one after the other, in rank order. Parts may differ in size:
  /// sizes[r] bytes from rank r, known to all; part.size() == sizes[rank()].
  virtual Status all_gather(std::span<const std::byte> part,
                            std::span<const size_t> sizes,
                            std::byte* out) = 0;

  /// Rows of a [rows, width] float32 matrix summed as all_sum does; rank r keeps rows [begins[r],
  /// begins[r+1]) in `out`. For long prefill, where a full all_sum would move every row to every
  /// rank.
  virtual Status reduce_scatter(const float* data,
                                size_t width,
                                std::span<const size_t> begins,
                                float* out) = 0;

  virtual Status send(std::span<const std::byte> data, uint32_t to) = 0;
  virtual Status recv(std::span<std::byte> data, uint32_t from) = 0;

  /// A group of the ranks that pass the same color, ordered by (key, rank). Collective. It uses
  /// this group's links: calls on both come from one thread, an error in one ends both.
  virtual Result<std::unique_ptr<Transport>> split(int color, int key) = 0;

  /// The longest silence from now on, such as ten times the predicted step.
  virtual void set_deadline(std::chrono::milliseconds deadline) = 0;

  /// Any thread: blocked calls return kPeerLost within milliseconds, here and on the other ranks.
  virtual void abort() = 0;
};

/// Meets the other ranks and authenticates them. Strangers and ranks of another epoch are refused
/// and hold nobody up. Errors name the rank that did not come or was refused: kDeadline,
/// kUnauthorized (another secret), kConflict (another epoch or size), kInvalid (options), kIo.
Result<std::unique_ptr<Transport>> connect(const Options& options);

}  // namespace tandem::comm
