// Which keys a token attends to, by scores that are cheaper than attention (DeepSeek V3.2's
// lightning indexer).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/attention.h"
#include "kernels/pool.h"
#include "kernels/scalar_type.h"

namespace tandem::kernels {

struct KeyChoiceArgs {
  const float* q = nullptr;        // [tokens, heads, dim]
  const float* weights = nullptr;  // [tokens, heads]
  size_t q_stride = 0;             // floats from token to token; 0 means heads * dim
  size_t weights_stride = 0;       // the same; 0 means heads
  size_t heads = 0;
  size_t dim = 0;
  const void* k_pool = nullptr;           // [pages, page_tokens, dim] of kv_type
  ScalarType kv_type = ScalarType::kF32;  // or kF16
  size_t page_tokens = 0;
  std::span<const AttentionRow> rows = {};  // whose keys are in the pool already
  size_t top_k = 0;
  uint32_t* chosen = nullptr;  // [tokens, top_k]
};

/// Of each token that sees more than top_k positions, the top_k with the greatest
///   sum over heads of weight * max(q . k, 0),
/// of equal ones the earlier, ascending; what other tokens have in `chosen` stays as it is. A
/// token's choice depends on nothing but its position, q, weights and keys. Uses the pool's
/// scratch.
void choose_keys(WorkerPool& pool, const KeyChoiceArgs& args);

}  // namespace tandem::kernels
