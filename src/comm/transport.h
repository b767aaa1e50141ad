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

/// Where and as whom to connect. Every rank of a group passes the same values but for `rank`.
struct Options {
  Kind kind = Kind::kSharedMemory;
  uint32_t rank = 0;
  uint32_t size = 1;
  uint32_t epoch = 0;
  std::string name;                    // shared memory: a name unique to instance and epoch
  std::vector<std::string> addresses;  // TCP: "host:port" of each rank's data listener
  std::vector<std::byte> secret;       // authenticates both sides; never logged
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds deadline{5'000};  // a collective's longest wait for a peer
};

/// One group of ranks. Calls come from one thread, in the same order on every rank, except abort().
/// Each message is tagged (epoch, sequence, operation, bytes): ranks that disagree get kCorrupt,
/// never wrong numbers. After any error the group is dead: every later call returns an error at
/// once. Errors: kPeerLost (closed or aborted), kDeadline (silent), kCorrupt (tag mismatch).
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

  /// A group of the ranks that pass the same color, ordered by (key, rank). Collective.
  virtual Result<std::unique_ptr<Transport>> split(int color, int key) = 0;

  /// Any thread: blocked calls return kPeerLost within milliseconds.
  virtual void abort() = 0;
};

/// Meets the other ranks and authenticates them. Errors name the rank that did not come or was
/// refused.
Result<std::unique_ptr<Transport>> connect(const Options& options);

}  // namespace tandem::comm
