// Paged pools of keys and values, written in place.
#pragma once

#include <span>

#include "tensor/step.h"

namespace tandem::tensor {

struct PoolShape {
  uint32_t pages = 0;
  uint32_t page_tokens = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t latent_dim = 0;  // 0: values lie apart; else they are the last dimensions of keys
  bool has_values = true;   // false: there are keys alone
  uint32_t value_dim = 0;   // of values that lie apart; 0: head_dim

  /// Numbers in a head's value.
  uint32_t values() const {
    return latent_dim != 0 ? latent_dim : value_dim != 0 ? value_dim : head_dim;
  }
};

/// One layer's pages. `keys` and `values` are allocated once, owned for life and never an output of
/// a node: writers take them as inputs and return only a new `order`, which every reader and the
/// next writer depend on by data, so that no device can reorder them.
///
/// Plain path  keys [pages, page_tokens, kv_heads, head_dim], values [pages, page_tokens, kv_heads,
///             value_dim]
/// Fast path   keys [pages, kv_heads, head_dim, page_tokens], so that a vector holds a dimension of
///             neighbouring keys; values [pages, kv_heads, page_tokens, value_dim]
/// Latent      `values` are `keys`, which lie on the fast path as values do elsewhere
/// Keys alone  `values` are `keys`, too
struct Pool {
  array keys;
  array values;
  array order;  // [1] uint32: 0 after a write or a copy, anything after a read
  PoolShape shape;
  PageGroup group = PageGroup::kAll;  // which pages of a row are pages of this pool

  bool is_latent() const { return shape.latent_dim != 0; }
  bool has_values() const { return shape.has_values && !is_latent(); }
  uint64_t bytes() const { return keys.nbytes() + (has_values() ? values.nbytes() : 0); }
};

/// Whether the device of the moment is the CPU, whose writers are functions and not kernels.
bool on_cpu();

/// Memory of a pool on the device of the moment, owned for life; content is undefined.
array pool_memory(const mx::Shape& shape, mx::Dtype dtype);

/// Content is undefined: a position is written before it is read.
Pool make_pool(const PoolShape& shape, mx::Dtype dtype, Path path = Path::kPlain);

/// Plain path: writes each token's keys and values, [tokens, kv_heads * head_dim or value_dim], to
/// its slot. Values are not looked at where the pool has none of their own.
void write(Pool& pool, const array& k, const array& v, const Step& step);

/// Copies pages from[i] to to[i], all reads before all writes is not promised: no page is both.
void copy_pages(Pool& pool, std::span<const uint32_t> from, std::span<const uint32_t> to);

/// Numbers of pages that cannot be known before the write that gave `order` has happened: whoever
/// gathers by them sees it. mx::depends() would not do on a GPU, whose kernels wait for the buffers
/// they read only.
array ordered(const array& pages, const array& order);

}  // namespace tandem::tensor
