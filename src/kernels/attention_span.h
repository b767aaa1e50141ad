// A piece of attention: some queries of one row that share a KV head, over one span of keys.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"

namespace tandem::kernels {

/// Rounded up, so that whole vectors of any width fit.
[[gnu::always_inline]] constexpr size_t padded(size_t floats, size_t unit = 16) {
  return (floats + unit - 1) / unit * unit;
}

inline constexpr float kBitsPerNat = 1.44269504f;  // log2(e)

/// The running softmax of queries: greatest score, sum of 2^(score - greatest), and the values
/// weighted by these powers; scores are in bits, that is times log2(e). The greatest is -infinity
/// before the first key.
struct SpanState {
  float* values = nullptr;    // [queries, padded(value_dim)]
  float* greatest = nullptr;  // [queries]
  float* total = nullptr;     // [queries]

  /// Floats that the state of some queries takes, and its place in such memory.
  static constexpr size_t floats(size_t queries, size_t value_dim) {
    return queries * padded(value_dim) + padded(2 * queries);
  }
  static SpanState at(float* memory, size_t queries, size_t value_dim) {
    float* after = memory + queries * padded(value_dim);
    return {memory, after, after + queries};
  }
};

/// Keys [low, high), counted from some position.
struct SeenKeys {
  size_t low = 0;
  size_t high = 0;

  [[gnu::always_inline]] bool is_empty() const { return low >= high; }
};

/// Queries (token, head), heads inner: tokens [first_token, first_token + tokens) of the row.
struct AttentionSpan {
  static constexpr size_t kBlockKeys = 64;  // keys whose scores are held at once
  static constexpr size_t kSpanKeys = 512;  // keys that are joined before spans are; of kBlockKeys
  static constexpr size_t kQueries = 96;    // most queries of one span

  const AttentionArgs* args = nullptr;  // strides resolved
  const AttentionRow* row = nullptr;
  size_t first_token = 0;
  size_t tokens = 0;
  size_t kv_head = 0;
  const uint32_t* heads = nullptr;  // query heads that read kv_head
  size_t head_count = 0;
  size_t key_begin = 0;  // position; a multiple of kSpanKeys

  [[gnu::always_inline]] size_t queries() const { return tokens * head_count; }
  [[gnu::always_inline]] size_t position(size_t query) const {
    return row->start + first_token + query / head_count;
  }
  [[gnu::always_inline]] uint32_t head(size_t query) const { return heads[query % head_count]; }
  /// Index of the query's token in q and out.
  [[gnu::always_inline]] size_t token(size_t query) const {
    return row->first_token + first_token + query / head_count;
  }
  /// The first position that a token at `at` sees.
  [[gnu::always_inline]] size_t first_visible(size_t at) const {
    return args->window == 0 || at < args->window ? 0 : at + 1 - args->window;
  }
  /// Which of the `count` keys from position `at` on some query between two positions sees.
  [[gnu::always_inline]] SeenKeys seen_keys(size_t first_position,
                                            size_t last_position,
                                            size_t at,
                                            size_t count) const {
    const size_t first = first_visible(first_position);
    if (last_position < at || first >= at + count) return {};
    const size_t high = last_position + 1 - at;
    return {first > at ? first - at : 0, high < count ? high : count};
  }
  /// What queries are multiplied by: scores are in bits, but for those that are capped first.
  [[gnu::always_inline]] float query_factor() const {
    return args->softcap > 0.0f ? args->scale : args->scale * kBitsPerNat;
  }
};

/// What attending to a span needs besides the state.
struct SpanScratch {
  float* queries = nullptr;  // [queries, padded(head_dim)], scaled
  float* totals = nullptr;   // [queries, 16]: a vector of sums each
  float* scores = nullptr;   // [queries, kBlockKeys], later weights
  float* decay = nullptr;    // [queries]: what the values so far are multiplied by
  float* keys = nullptr;     // of a block: [panels, head_dim, keys of a panel]
  float* values = nullptr;   // of a block: [panels, kBlockKeys, dimensions of a panel]

  static constexpr size_t kTotals = 16;
  static constexpr size_t kMostPanel = 32;

  static constexpr size_t floats(size_t head_dim, size_t value_dim) {
    constexpr size_t kQueries = AttentionSpan::kQueries, kKeys = AttentionSpan::kBlockKeys;
    return kQueries * (padded(head_dim) + kTotals + kKeys + 1) + kTotals +
           kKeys * (head_dim + padded(value_dim, kMostPanel));
  }
  [[gnu::always_inline]] static SpanScratch at(float* memory, size_t head_dim) {
    constexpr size_t kQueries = AttentionSpan::kQueries, kKeys = AttentionSpan::kBlockKeys;
    SpanScratch out;
    out.queries = memory;
    out.totals = out.queries + kQueries * padded(head_dim);
    out.scores = out.totals + kQueries * kTotals;
    out.decay = out.scores + kQueries * kKeys;
    out.keys = out.decay + kQueries + kTotals;
    out.values = out.keys + kKeys * head_dim;
    return out;
  }
};

}  // namespace tandem::kernels
