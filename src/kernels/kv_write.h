// Writes of keys and values into a paged pool.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/pool.h"

namespace tandem::kernels {

/// Copies token t's keys and values to slot slots[t] = page * page_tokens + offset of the pools
/// [pages, page_tokens, kv_heads, head_dim].
struct KvWriteArgs {
  const float* k = nullptr;  // [tokens, kv_heads, head_dim]
  const float* v = nullptr;
  size_t k_stride = 0;  // floats from token to token; 0 means kv_heads * head_dim
  size_t v_stride = 0;
  size_t tokens = 0;
  size_t kv_heads = 0;
  size_t head_dim = 0;
  const uint32_t* slots = nullptr;  // [tokens], distinct
  float* k_pool = nullptr;
  float* v_pool = nullptr;
};

void kv_write(WorkerPool& pool, const KvWriteArgs& args);

}  // namespace tandem::kernels
