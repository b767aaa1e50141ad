// Writes of keys and values into a paged pool, for any vector type.
#pragma once

#include <cstddef>
#include <cstring>

#include "kernels/kv_write.h"
#include "kernels/row_kernels.h"

namespace tandem::kernels {

/// The first n <= kLanes values of a vector in the type of a pool, and some memory behind them.
template <class V, ScalarType kType>
struct Stored {
  alignas(64) std::byte bytes[V::kLanes * sizeof(float)];

  [[gnu::always_inline]] Stored(const float* from, size_t n) {
    const V x = n < V::kLanes ? V::load(from, n) : V::load(from);
    if constexpr (kType == ScalarType::kF16) {
      x.store_halves(reinterpret_cast<uint16_t*>(bytes));
    } else {
      x.store(reinterpret_cast<float*>(bytes));
    }
  }
};

/// One head of one token: k to a column of its page, v to a row.
template <class V, ScalarType kType>
[[gnu::always_inline]] inline void write_head(
    const KvWriteArgs& args, const float* k, const float* v, size_t page, size_t offset) {
  constexpr size_t kBytes = size_of(kType);
  const size_t first = page * args.page_tokens * args.head_dim;
  std::byte* k_to = static_cast<std::byte*>(args.k_pool) + (first + offset) * kBytes;
  std::byte* v_to =
      static_cast<std::byte*>(args.v_pool) + (first + offset * args.head_dim) * kBytes;
  for (size_t i = 0; i < args.head_dim; i += V::kLanes) {
    const size_t rest = args.head_dim - i;
    const size_t n = rest < V::kLanes ? rest : V::kLanes;
    const Stored<V, kType> keys(k + i, n), values(v + i, n);
    for (size_t j = 0; j < n; ++j)
      std::memcpy(k_to + (i + j) * args.page_tokens * kBytes, keys.bytes + j * kBytes, kBytes);
    if (n == V::kLanes) {
      std::memcpy(v_to + i * kBytes, values.bytes, V::kLanes * kBytes);
    } else {
      std::memcpy(v_to + i * kBytes, values.bytes, n * kBytes);
    }
  }
}

template <class V, ScalarType kType>
[[gnu::always_inline]] inline void write_tokens(const KvWriteArgs& args, size_t begin, size_t end) {
  for (size_t t = begin; t < end; ++t) {
    if (args.rope != nullptr) rope_range<V>(*args.rope, t, t + 1);
    const size_t page = args.slots[t] / args.page_tokens, offset = args.slots[t] % args.page_tokens;
    for (size_t h = 0; h < args.kv_heads; ++h) {
      const size_t at = h * args.head_dim;
      write_head<V, kType>(args, args.k + t * args.k_stride + at, args.v + t * args.v_stride + at,
                           page * args.kv_heads + h, offset);
    }
  }
}

template <class V>
void kv_write_range(const KvWriteArgs& args, size_t begin, size_t end) {
  if (args.kv_type == ScalarType::kF16) {
    write_tokens<V, ScalarType::kF16>(args, begin, end);
  } else {
    write_tokens<V, ScalarType::kF32>(args, begin, end);
  }
}

}  // namespace tandem::kernels
