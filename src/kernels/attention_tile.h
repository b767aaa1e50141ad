// Products of a few queries with keys and of their weights with values, held in registers. Never
// inlined: several callers share them, and they are large.
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/attention_span.h"
#include "kernels/with_count.h"

namespace tandem::kernels {

/// How many accumulators fit the registers that a vector type has.
template <class V>
struct AttentionTile {
  static constexpr int kRegisters = V::kLanes == 16 ? 32 : 16;
  static constexpr int kRows = kRegisters == 32 ? 12 : 6;  // most queries of a tile
  static constexpr int kDirectRows = 6;                    // of one that reads a pool itself
  static constexpr int kPanelVecs = 2;                     // vectors of a tile over scratch
  static constexpr size_t kPanel = kPanelVecs * V::kLanes;

  /// Vectors of a tile that reads a pool: enough for products to overlap.
  static constexpr int direct_vecs(int rows) {
    const int block = static_cast<int>(AttentionSpan::kBlockKeys / V::kLanes);
    int vecs = 8;
    while (vecs > 2 && (vecs > block || rows * vecs > kRegisters * 3 / 4)) vecs /= 2;
    return vecs;
  }
};

/// acc [kRows, kVecs] += factor of a row * vector of a column. Whichever there are fewer of stay in
/// registers, so that accumulators need not leave them.
template <class V, int kRows, int kVecs, class Factor, class Column>
[[gnu::always_inline]] inline void add_products(V (&acc)[kRows][kVecs],
                                                const Factor& factor,
                                                const Column& column) {
  if constexpr (kRows < kVecs) {
    V factors[kRows];
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) factors[r] = factor(static_cast<size_t>(r));
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) {
      const V x = column(static_cast<size_t>(c));
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) acc[r][c] = V::fma(factors[r], x, acc[r][c]);
    }
  } else {
    V columns[kVecs];
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) columns[c] = column(static_cast<size_t>(c));
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const V x = factor(static_cast<size_t>(r));
#pragma GCC unroll 8
      for (int c = 0; c < kVecs; ++c) acc[r][c] = V::fma(x, columns[c], acc[r][c]);
    }
  }
}

template <class V, int kRows, int kVecs>
[[gnu::always_inline]] inline void store_tile(const V (&acc)[kRows][kVecs],
                                              float* out,
                                              size_t stride) {
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c)
      acc[r][c].store(out + static_cast<size_t>(r) * stride + static_cast<size_t>(c) * V::kLanes);
  }
}

/// Vectors of neighbouring keys, of dimension after dimension.
template <int kVecs>
struct KeyColumns {
  const std::byte* first[kVecs] = {};  // of dimension 0
  size_t stride = 0;                   // bytes to the next dimension
  const std::byte* ahead = nullptr;    // memory to fetch meanwhile, or null
};

/// scores [kRows, kVecs] = q . k, summed over dimensions in order.
template <class V, ScalarType kType, int kRows, int kVecs>
[[gnu::noinline]] void score_tile(const float* q,
                                  size_t dim,
                                  const KeyColumns<kVecs>& keys,
                                  float* scores) {
  constexpr size_t kAhead = static_cast<size_t>(kVecs) * V::kLanes * size_of(kType);
  const size_t q_stride = padded(dim);
  const size_t stride = keys.stride;
  const std::byte* first[kVecs];
  for (int c = 0; c < kVecs; ++c) first[c] = keys.first[c];
  V acc[kRows][kVecs];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c) acc[r][c] = V::zero();
  }
  const auto run = [&](auto fetches) {
    const std::byte* ahead = keys.ahead;
    for (size_t i = 0, at = 0; i < dim; ++i, at += stride) {
      if constexpr (decltype(fetches)::value) {
        __builtin_prefetch(ahead);
        ahead += kAhead;
      }
      add_products(
          acc, [&](size_t r) { return V::all(q[r * q_stride + i]); },
          [&](size_t c) { return V::load(first[c] + at, kType); });
    }
  };
  keys.ahead == nullptr ? run(std::false_type{}) : run(std::true_type{});
  store_tile(acc, scores, AttentionSpan::kBlockKeys);
}

/// Keys [begin, end) of a block whose values lie in neighbouring rows.
struct ValueRun {
  const std::byte* first;  // row of key `begin`
  size_t begin;
  size_t end;
  const std::byte* ahead;  // memory to fetch meanwhile, or null
};

struct ValueRows {
  const ValueRun* runs = nullptr;
  size_t count = 0;
  size_t stride = 0;      // bytes from key to key
  size_t page_bytes = 0;  // with `ahead`: what is fetched for each byte of a row
};

/// out [kRows, kVecs] = out * decay + weights . v, over keys in order; `offset` bytes into rows.
template <class V, ScalarType kType, int kRows, int kVecs>
[[gnu::noinline]] void value_tile(const float* weights,
                                  const float* decay,
                                  const ValueRows& rows,
                                  size_t offset,
                                  float* out,
                                  size_t out_stride) {
  constexpr size_t kVecBytes = V::kLanes * size_of(kType);
  V acc[kRows][kVecs];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    const V factor = V::all(decay[r]);
    const float* from = out + static_cast<size_t>(r) * out_stride;
#pragma GCC unroll 8
    for (int c = 0; c < kVecs; ++c)
      acc[r][c] = V::load(from + static_cast<size_t>(c) * V::kLanes) * factor;
  }
  for (size_t i = 0; i < rows.count; ++i) {
    const ValueRun& run = rows.runs[i];
    const std::byte* at = run.first + offset;
    const auto add = [&](auto fetches) {
      const std::byte* ahead = run.ahead + offset * rows.page_bytes;
      for (size_t j = run.begin; j < run.end; ++j, at += rows.stride) {
        if constexpr (decltype(fetches)::value) {
          __builtin_prefetch(ahead);
          ahead += kVecBytes * kVecs;
        }
        add_products(
            acc, [&](size_t r) { return V::all(weights[r * AttentionSpan::kBlockKeys + j]); },
            [&](size_t c) { return V::load(at + c * kVecBytes, kType); });
      }
    };
    run.ahead == nullptr ? add(std::false_type{}) : add(std::true_type{});
  }
  store_tile(acc, out, out_stride);
}

}  // namespace tandem::kernels
