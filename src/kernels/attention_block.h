// A block of keys and values of a paged pool: where they lie, and copies in float32.
#pragma once

#include <cstddef>

#include "kernels/attention_tile.h"

namespace tandem::kernels {

/// Keys [low, high) of the block that starts at position `begin` of a row: those that some query
/// sees. No other value is read, and keys only in vectors that hold one of these.
template <class V, ScalarType kType>
struct PoolBlock {
  static constexpr size_t kKeys = AttentionSpan::kBlockKeys;
  static constexpr size_t kVecs = kKeys / V::kLanes;
  static constexpr size_t kBytes = size_of(kType);

  const AttentionSpan& span;
  size_t begin = 0;
  size_t low = 0, high = 0;
  size_t next_end = 0;  // keys before this position may be fetched ahead

  [[gnu::always_inline]] size_t page_tokens() const { return span.args->page_tokens; }
  [[gnu::always_inline]] size_t dim() const { return span.args->head_dim; }

  /// Bytes from the pools' begin to this KV head's part of the page of a position.
  [[gnu::always_inline]] size_t page_at(size_t position) const {
    const size_t page = span.row->pages[position / page_tokens()];
    return (page * span.args->kv_heads + span.kv_head) * page_tokens() * dim() * kBytes;
  }
  [[gnu::always_inline]] const std::byte* key_at(size_t position) const {
    return static_cast<const std::byte*>(span.args->k_pool) + page_at(position) +
           position % page_tokens() * kBytes;
  }
  [[gnu::always_inline]] const std::byte* value_at(size_t position) const {
    return static_cast<const std::byte*>(span.args->v_pool) + page_at(position) +
           position % page_tokens() * dim() * kBytes;
  }

  /// Whether vectors lie in pages whole.
  [[gnu::always_inline]] bool has_whole_keys() const { return page_tokens() % V::kLanes == 0; }
  [[gnu::always_inline]] bool has_whole_values() const { return dim() % V::kLanes == 0; }

  /// Where each vector of keys begins; one that nobody sees repeats one that is seen. Requires
  /// has_whole_keys().
  [[gnu::always_inline]] void find_keys(const std::byte* (&at)[kVecs]) const {
    const size_t first = low / V::kLanes, end = (high + V::kLanes - 1) / V::kLanes;
    for (size_t v = first; v < end; ++v) at[v] = key_at(begin + v * V::kLanes);
    for (size_t v = 0; v < first; ++v) at[v] = at[first];
    for (size_t v = end; v < kVecs; ++v) at[v] = at[end - 1];
  }

  /// Calls f(position, from, to) for each page's part [from, to) of the block's keys.
  template <class F>
  [[gnu::always_inline]] void for_pages(const F& f) const {
    for (size_t j = low; j < high;) {
      const size_t rest = page_tokens() - (begin + j) % page_tokens();
      const size_t to = j + rest < high ? j + rest : high;
      f(begin + j, j, to);
      j = to;
    }
  }

  /// Returns how many runs were filled. While values are read, the keys of the next block come.
  [[gnu::always_inline]] size_t find_values(ValueRun (&runs)[kKeys]) const {
    size_t count = 0;
    for_pages([&](size_t position, size_t from, size_t to) {
      const bool has_next = position + kKeys < next_end;
      runs[count++] = {value_at(position), from, to, has_next ? key_at(position + kKeys) : nullptr};
    });
    return count;
  }

  /// out [panels, head_dim, keys of a panel]; keys outside [low, high) stay as they were or become
  /// what their slots hold.
  [[gnu::always_inline]] void copy_keys(float* out) const {
    constexpr size_t kPanel = AttentionTile<V>::kPanel;
    const size_t stride = page_tokens() * kBytes, dims = dim();
    const bool is_whole = has_whole_keys();
    for (size_t j = is_whole ? low / V::kLanes * V::kLanes : low; j < high;
         j += is_whole ? V::kLanes : 1) {
      const std::byte* from = key_at(begin + j);
      float* to = out + j / kPanel * kPanel * dims + j % kPanel;
      for (size_t i = 0; i < dims; ++i, from += stride, to += kPanel) {
        if (is_whole) {
          V::load(from, kType).store(to);
        } else {
          *to = load_scalar(from, kType, 0);
        }
      }
    }
  }

  /// out [panels, kKeys, dimensions of a panel], the last panel padded to a vector with zeros.
  [[gnu::always_inline]] void copy_values(float* out) const {
    constexpr size_t kPanel = AttentionTile<V>::kPanel;
    const size_t dims = dim(), whole = dims / V::kLanes * V::kLanes;
    for_pages([&](size_t position, size_t first, size_t end) {
      const std::byte* from = value_at(position);
      for (size_t j = first; j < end; ++j, from += dims * kBytes) {
        float* to = out + j * kPanel;
        for (size_t i = 0; i < whole; i += V::kLanes)
          V::load(from + i * kBytes, kType).store(to + i / kPanel * (kKeys * kPanel) + i % kPanel);
        if (whole == dims) continue;
        float tail[V::kLanes] = {};
        for (size_t i = whole; i < dims; ++i) tail[i - whole] = load_scalar(from, kType, i);
        V::load(tail).store(to + whole / kPanel * (kKeys * kPanel) + whole % kPanel);
      }
    });
  }
};

}  // namespace tandem::kernels
