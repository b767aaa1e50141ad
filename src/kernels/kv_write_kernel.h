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

/// Calls f(index, values, count) with a row's values as they are kept, a vector of them at a time.
template <class V, ScalarType kType, class F>
[[gnu::always_inline]] inline void for_stored(const float* row, size_t dim, const F& f) {
  for (size_t i = 0; i < dim; i += V::kLanes) {
    const size_t n = dim - i < V::kLanes ? dim - i : V::kLanes;
    f(i, Stored<V, kType>(row + i, n), n);
  }
}

/// A head of a token becomes a row of its page.
template <class V, ScalarType kType>
[[gnu::always_inline]] inline void write_row(const float* row, size_t dim, std::byte* to) {
  constexpr size_t kBytes = size_of(kType);
  for_stored<V, kType>(row, dim, [&](size_t i, const auto& stored, size_t n) {
    if (n == V::kLanes) {
      std::memcpy(to + i * kBytes, stored.bytes, V::kLanes * kBytes);
    } else {
      std::memcpy(to + i * kBytes, stored.bytes, n * kBytes);
    }
  });
}

/// A head of a token becomes a column of its page.
template <class V, ScalarType kType>
[[gnu::always_inline]] inline void write_column(const float* row,
                                                size_t dim,
                                                std::byte* to,
                                                size_t page_tokens) {
  constexpr size_t kBytes = size_of(kType);
  for_stored<V, kType>(row, dim, [&](size_t i, const auto& stored, size_t n) {
    for (size_t j = 0; j < n; ++j)
      std::memcpy(to + (i + j) * page_tokens * kBytes, stored.bytes + j * kBytes, kBytes);
  });
}

template <class V, ScalarType kType>
[[gnu::always_inline]] inline void write_tokens(const KvWriteArgs& args, size_t begin, size_t end) {
  constexpr size_t kBytes = size_of(kType);
  auto* k_pool = static_cast<std::byte*>(args.k_pool);
  auto* v_pool = static_cast<std::byte*>(args.v_pool);
  for (size_t t = begin; t < end; ++t) {
    if (args.rope != nullptr) rope_range<V>(*args.rope, t, t + 1);
    const size_t page = args.slots[t] / args.page_tokens, offset = args.slots[t] % args.page_tokens;
    for (size_t h = 0; h < args.kv_heads; ++h) {
      const size_t first = (page * args.kv_heads + h) * args.page_tokens;  // slot
      const size_t row = first + offset;
      const size_t column = (first * args.head_dim + offset) * kBytes;
      const float* k = args.k + t * args.k_stride + h * args.head_dim;
      if (args.has_key_rows)
        write_row<V, kType>(k, args.head_dim, k_pool + row * args.head_dim * kBytes);
      else
        write_column<V, kType>(k, args.head_dim, k_pool + column, args.page_tokens);
      if (args.v != nullptr)
        write_row<V, kType>(args.v + t * args.v_stride + h * args.value_dim, args.value_dim,
                            v_pool + row * args.value_dim * kBytes);
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
