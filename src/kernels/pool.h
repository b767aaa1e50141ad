// WorkerPool: a fixed set of threads that run one parallel loop at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/cpu_level.h"

namespace tandem::kernels {

/// Splits loops over `threads` threads, the caller being one of them. Each has a share of a loop
/// and takes it in chunks; whoever is done takes chunks of the others' shares, so that a worker
/// that is slow, asleep or without a core holds up at most the chunk it has begun. Workers spin
/// briefly after a loop and then sleep: an idle pool uses no CPU. One thread at a time may use a
/// pool; a loop body must not start another loop on the same pool and must not throw.
///
/// Every kernel takes a pool and runs at the pool's CPU level; no kernel's result depends on the
/// number of threads.
class WorkerPool {
 public:
  /// Requires threads >= 1. A `level` that the machine has not is a bug (checked). With `cores`
  /// worker w stays on core cores[w % size], and the caller on cores[0] from its first loop on; a
  /// core that cannot be had leaves its thread where it is.
  explicit WorkerPool(size_t threads,
                      CpuLevel level = detect_cpu_level(),
                      std::vector<uint32_t> cores = {});
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  size_t threads() const;
  CpuLevel level() const;

  /// Calls fn(begin, end) or fn(begin, end, worker) for chunks that cover [0, count) once; `worker`
  /// says who runs it, the caller being 0. Which chunks there are and who takes them is open, but
  /// that a chunk of a long loop begins at a multiple of kQuantum, and ends at one or at count.
  /// Returns when all are done; what the workers wrote is visible to the caller. Requires count
  /// below 2^32.
  template <class F>
  void parallel_for(size_t count, F&& fn) {
    using Fn = std::remove_reference_t<F>;
    run(
        count,
        [](void* context, size_t begin, size_t end, size_t worker) {
          Fn& body = *static_cast<Fn*>(context);
          if constexpr (std::is_invocable_v<Fn&, size_t, size_t, size_t>) {
            body(begin, end, worker);
          } else {
            body(begin, end);
          }
        },
        const_cast<std::remove_const_t<Fn>*>(&fn));
  }

  /// Loops of at least kQuantum * kChunks * threads() are cut at multiples of it.
  static constexpr size_t kQuantum = 4;
  /// Chunks of a worker's share.
  static constexpr size_t kChunks = 8;

  /// Memory of at least `floats` floats, 64-byte aligned, content undefined; kept by the pool and
  /// valid until the next scratch() of the same worker. Requires worker < threads().
  float* scratch(size_t worker, size_t floats);

  /// As scratch(), but one buffer for all workers, to be asked for by the caller outside loops.
  float* shared_scratch(size_t floats);

 private:
  using Body = void (*)(void* context, size_t begin, size_t end, size_t worker);
  void run(size_t count, Body body, void* context);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::kernels
