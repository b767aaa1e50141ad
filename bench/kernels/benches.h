// The benchmarks of this program.
#pragma once

#include "kernels/pool.h"
#include "kernels/timing.h"

namespace tandem::bench {

/// Reads memory and multiplies registers: the limits that figures are compared with.
void bench_limits(const Settings& settings, kernels::WorkerPool& pool);
void bench_matmul(const Settings& settings, kernels::WorkerPool& pool);
void bench_attention(const Settings& settings, kernels::WorkerPool& pool);
/// Dispatch, norms, rotary embedding, activations, cache writes.
void bench_small(const Settings& settings, kernels::WorkerPool& pool);

}  // namespace tandem::bench
