// The benchmarks of this program.
#pragma once

#include "kernels/pool.h"
#include "kernels/timing.h"

namespace tandem::bench {

/// Reads memory and multiplies registers: the limits that figures are compared with.
void bench_limits(const Settings& settings, kernels::WorkerPool& pool);
void bench_matmul(const Settings& settings, kernels::WorkerPool& pool);
/// A layer of experts: both products, the activation between them and the sum over experts.
void bench_experts(const Settings& settings, kernels::WorkerPool& pool);
void bench_attention(const Settings& settings, kernels::WorkerPool& pool);
/// Block-sparse attention: the choice of blocks and attention to them.
void bench_blocks(const Settings& settings, kernels::WorkerPool& pool);
void bench_delta(const Settings& settings, kernels::WorkerPool& pool);
/// Dispatch, norms, rotary embedding, activations, cache writes.
void bench_small(const Settings& settings, kernels::WorkerPool& pool);

}  // namespace tandem::bench
