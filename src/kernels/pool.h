// WorkerPool: a fixed set of threads that run one parallel loop at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

#include "kernels/cpu_level.h"

namespace tandem::kernels {

/// Splits loops over `threads` threads, the caller being one of them. Workers spin briefly after a
/// loop and then sleep: an idle pool uses no CPU. One thread at a time may use a pool; a loop body
/// must not start another loop on the same pool and must not throw.
///
/// Every kernel takes a pool and runs at the pool's CPU level; no kernel's result depends on the
/// number of threads.
class WorkerPool {
 public:
  /// Requires threads >= 1. `level` above what the machine has is a bug (checked).
  explicit WorkerPool(size_t threads, CpuLevel level = detect_cpu_level());
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  size_t threads() const;
  CpuLevel level() const;

  /// Calls fn(begin, end) or fn(begin, end, worker) once for each worker's share of [0, count);
  /// worker w of n gets [ceil(count w / n), ceil(count (w + 1) / n)), the caller is worker 0. Empty
  /// shares are skipped. Returns when all are done; what the workers wrote is visible to the
  /// caller.
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
