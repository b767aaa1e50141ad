// A piece of attention: some queries of one row that share a KV head, over one span of keys.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"

namespace tandem::kernels {

/// The running softmax of queries: greatest score, sum of exp(score - greatest), and the values
/// weighted by these exponentials. The greatest is -infinity before the first key.
struct SpanState {
  float* greatest = nullptr;  // [queries]
  float* total = nullptr;     // [queries]
  float* values = nullptr;    // [queries, head_dim]

  /// Floats that the state of some queries takes, and its place in such memory.
  static constexpr size_t floats(size_t queries, size_t head_dim) {
    return queries * (head_dim + 2);
  }
  static SpanState at(float* memory, size_t queries) {
    return {memory, memory + queries, memory + 2 * queries};
  }
};

/// Queries (token, head), heads inner: tokens [first_token, first_token + tokens) of the row.
struct AttentionSpan {
  static constexpr size_t kBlockKeys = 32;  // keys whose scores are held at once
  static constexpr size_t kSpanKeys = 512;  // keys that are joined before spans are; of kBlockKeys
  static constexpr size_t kQueries = 32;    // most queries of one span

  const AttentionArgs* args = nullptr;  // strides resolved
  const AttentionRow* row = nullptr;
  size_t first_token = 0;
  size_t tokens = 0;
  size_t kv_head = 0;
  const uint32_t* heads = nullptr;  // query heads that read kv_head
  size_t head_count = 0;
  size_t key_begin = 0;  // position; a multiple of kSpanKeys

  size_t queries() const { return tokens * head_count; }
  size_t position(size_t query) const { return row->start + first_token + query / head_count; }
  uint32_t head(size_t query) const { return heads[query % head_count]; }
  /// The first position that a token at `at` sees.
  size_t first_visible(size_t at) const {
    return args->window == 0 || at < args->window ? 0 : at + 1 - args->window;
  }
  /// Scratch: the transposed keys of a block, scores, and a correction a query.
  static constexpr size_t scratch_floats(size_t head_dim) {
    return (head_dim + 8) * kBlockKeys + kQueries * kBlockKeys + kQueries;
  }
};

}  // namespace tandem::kernels
