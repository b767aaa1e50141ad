// A block of keys and values of a paged pool: where they lie, and copies in float32.
#pragma once

#include <cstddef>

#include "kernels/attention_tile.h"
#include "kernels/transpose.h"

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
  [[gnu::always_inline]] size_t value_dim() const { return span.args->value_dim; }
  /// Whether values are parts of keys, which lie in rows.
  [[gnu::always_inline]] bool is_latent() const { return span.args->v_pool == nullptr; }

  /// Whether neighbouring keys need not be neighbours in the pool.
  [[gnu::always_inline]] bool has_choice() const { return span.row->chosen != nullptr; }

  /// Slots from the pools' begin to this KV head's part of the page of a position.
  [[gnu::always_inline]] size_t page_at(size_t position) const {
    const AttentionRow& row = *span.row;
    const size_t page = row.pages[span.kv_head * row.pages_stride + position / page_tokens()];
    return (page * span.args->kv_heads + span.kv_head) * page_tokens();
  }
  /// Where the dimensions of a key lie page_tokens apart. Requires one that is not latent.
  [[gnu::always_inline]] const std::byte* key_at(size_t position) const {
    return static_cast<const std::byte*>(span.args->k_pool) +
           (page_at(position) * dim() + position % page_tokens()) * kBytes;
  }
  /// Where a latent key begins.
  [[gnu::always_inline]] const std::byte* key_row_at(size_t position) const {
    const size_t at = has_choice() ? span.row->chosen[position] : position;
    return static_cast<const std::byte*>(span.args->k_pool) +
           (page_at(at) + at % page_tokens()) * dim() * kBytes;
  }
  [[gnu::always_inline]] const std::byte* value_at(size_t position) const {
    if (is_latent()) return key_row_at(position) + (dim() - value_dim()) * kBytes;
    return static_cast<const std::byte*>(span.args->v_pool) +
           (page_at(position) + position % page_tokens()) * value_dim() * kBytes;
  }
  /// Bytes from value to value.
  [[gnu::always_inline]] size_t value_stride() const {
    return (is_latent() ? dim() : value_dim()) * kBytes;
  }

  /// Whether queries may read the pools' vectors as they lie.
  [[gnu::always_inline]] bool has_vectors() const {
    return !is_latent() && page_tokens() % V::kLanes == 0 && value_dim() % V::kLanes == 0;
  }

  /// Where each vector of keys begins; one that nobody sees repeats one that is seen. Requires
  /// has_vectors().
  [[gnu::always_inline]] void find_keys(const std::byte* (&at)[kVecs]) const {
    const size_t first = low / V::kLanes, end = (high + V::kLanes - 1) / V::kLanes;
    for (size_t v = first; v < end; ++v) at[v] = key_at(begin + v * V::kLanes);
    for (size_t v = 0; v < first; ++v) at[v] = at[first];
    for (size_t v = end; v < kVecs; ++v) at[v] = at[end - 1];
  }

  /// Calls f(position, from, to) for each page's part [from, to) of the block's keys, or each key.
  template <class F>
  [[gnu::always_inline]] void for_pages(const F& f) const {
    for (size_t j = low; j < high;) {
      const size_t rest = has_choice() ? 1 : page_tokens() - (begin + j) % page_tokens();
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
  /// what some slot holds.
  [[gnu::always_inline]] void copy_keys(float* out) const {
    if (is_latent()) return copy_key_rows(out);
    constexpr size_t kPanel = AttentionTile<V>::kPanel;
    const size_t stride = page_tokens() * kBytes, dims = dim();
    const bool is_whole = page_tokens() % V::kLanes == 0;
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

  /// The same of latent keys.
  [[gnu::always_inline]] void copy_key_rows(float* out) const {
    constexpr size_t kPanel = AttentionTile<V>::kPanel;
    const size_t dims = dim(), whole = dims / V::kLanes * V::kLanes;
    for (size_t j = low / V::kLanes * V::kLanes; j < high; j += V::kLanes) {
      const std::byte* from[V::kLanes];
      find_key_rows(j, from);
      float* to = out + j / kPanel * kPanel * dims + j % kPanel;
      for (size_t i = 0; i < whole; i += V::kLanes) {
        V square[V::kLanes];
        load_square(from, i, square);
        for (size_t r = 0; r < V::kLanes; ++r) square[r].store(to + (i + r) * kPanel);
      }
      for (size_t i = whole; i < dims; ++i)
        for (size_t r = 0; r < V::kLanes; ++r) to[i * kPanel + r] = load_scalar(from[r], kType, i);
    }
  }

  /// Where keys from j of the block on begin; for those that nobody sees, the nearest one.
  [[gnu::always_inline]] void find_key_rows(size_t j, const std::byte* (&at)[V::kLanes]) const {
    for (size_t r = 0; r < V::kLanes; ++r) {
      const size_t key = j + r < low ? low : j + r < high ? j + r : high - 1;
      at[r] = key_row_at(begin + key);
    }
  }

  /// Dimensions from i on of some keys: vectors of keys, one for each dimension.
  [[gnu::always_inline]] static void load_square(const std::byte* const (&from)[V::kLanes],
                                                 size_t i,
                                                 V (&square)[V::kLanes]) {
    for (size_t r = 0; r < V::kLanes; ++r) square[r] = V::load(from[r] + i * kBytes, kType);
    transpose(square);
  }

  /// out [panels, kKeys, dimensions of a panel], the last panel padded to a vector with zeros.
  [[gnu::always_inline]] void copy_values(float* out) const {
    constexpr size_t kPanel = AttentionTile<V>::kPanel;
    const size_t dims = value_dim(), whole = dims / V::kLanes * V::kLanes;
    const size_t stride = value_stride();
    for_pages([&](size_t position, size_t first, size_t end) {
      const std::byte* from = value_at(position);
      for (size_t j = first; j < end; ++j, from += stride) {
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
