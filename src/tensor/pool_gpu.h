// In-place writes of pools on GPUs, through MLX's custom kernels.
#pragma once

#include "tensor/pool.h"
#include "tensor/state_pool.h"

namespace tandem::tensor {

/// As write(): copies rows to their slots and returns the new order. k and v are of any type,
/// converted to the pool's. `slots` is [1 + tokens]: their number first.
array write_on_gpu(const Pool& pool, const array& k, const array& v, const array& slots);

/// As copy_pages().
array copy_on_gpu(const Pool& pool, std::span<const uint32_t> from, std::span<const uint32_t> to);

/// As store_states(), of contiguous float32. `slots` is [1 + saves]: their number first.
array store_on_gpu(const StatePool& pool, StatePart part, const array& values, const array& slots);

}  // namespace tandem::tensor
