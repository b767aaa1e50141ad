// Writes of keys and values into a paged pool.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/pool.h"
#include "kernels/rope.h"
#include "kernels/scalar_type.h"

namespace tandem::kernels {

/// Puts token t's keys and values into slot slots[t] = page * page_tokens + offset of the pools, in
/// their type: float16 is rounded to nearest even, and what is too large for it becomes +-65504.
struct KvWriteArgs {
  float* k = nullptr;        // [tokens, kv_heads, head_dim]; rotated in place where there is a rope
  const float* v = nullptr;  // [tokens, kv_heads, value_dim]; null: there are keys alone
  bool has_key_rows = false;  // keys lie as values do
  size_t k_stride = 0;        // floats from token to token; 0 means kv_heads * head_dim
  size_t v_stride = 0;        // the same of values
  size_t tokens = 0;
  size_t kv_heads = 0;
  size_t head_dim = 0;
  size_t value_dim = 0;  // of v; 0 means head_dim
  size_t page_tokens = 0;
  const uint32_t* slots = nullptr;        // [tokens], distinct
  ScalarType kv_type = ScalarType::kF32;  // or kF16
  void* k_pool = nullptr;                 // [pages, kv_heads, head_dim, page_tokens], or as v_pool
  void* v_pool = nullptr;                 // [pages, kv_heads, page_tokens, value_dim]
  const RopeArgs* rope = nullptr;         // of k, over these tokens; null: k is stored as it is
};

void kv_write(WorkerPool& pool, const KvWriteArgs& args);

}  // namespace tandem::kernels
