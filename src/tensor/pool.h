// Paged pools of keys and values, written in place.
#pragma once

#include <span>

#include "tensor/step.h"

namespace tandem::tensor {

/// One layer's pages. `keys` and `values` are allocated once, owned for life and never an output of
/// a node: writers take them as inputs and return only a new `order`, which every reader and the
/// next writer depend on by data, so that no device can reorder them.
struct Pool {
  array keys;    // [pages, page_tokens, kv_heads, head_dim]
  array values;  // the same
  array order;   // [1] uint32: 0 after a write or a copy, anything after a read

  uint32_t page_tokens() const { return static_cast<uint32_t>(keys.shape(1)); }
  int kv_heads() const { return keys.shape(2); }
  int head_dim() const { return keys.shape(3); }
};

struct PoolShape {
  uint32_t pages = 0;
  uint32_t page_tokens = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;

  /// Bytes of keys and values of one page.
  uint64_t page_bytes(mx::Dtype dtype) const {
    return uint64_t{2} * page_tokens * kv_heads * head_dim * mx::size_of(dtype);
  }
};

/// Content is undefined: a position is written before it is read.
Pool make_pool(const PoolShape& shape, mx::Dtype dtype);

/// Writes each token's keys and values, [tokens, kv_heads * head_dim], to its slot.
void write(Pool& pool, const array& k, const array& v, const Step& step, const Context& context);

/// Copies pages from[i] to to[i], all reads before all writes is not promised: no page is both.
void copy_pages(Pool& pool,
                std::span<const uint32_t> from,
                std::span<const uint32_t> to,
                const Context& context);

/// Numbers of pages that cannot be known before the write that gave `order` has happened: whoever
/// gathers by them sees it. mx::depends() would not do on a GPU, whose kernels wait for the buffers
/// they read only.
array ordered(const array& pages, const array& order);

}  // namespace tandem::tensor
