// Rows become columns, for any vector type.
#pragma once

#include <cstddef>

namespace tandem::kernels {

/// A square of floats is turned round. Each pass joins row i with row i + n / 2, lane by lane, to
/// rows 2 i and 2 i + 1: the place of a float, its row and lane as one binary number, is rotated by
/// one bit. After log2(n) passes row and lane have changed places.
template <class V>
[[gnu::always_inline]] inline void transpose(V (&rows)[V::kLanes]) {
  constexpr size_t kHalf = V::kLanes / 2;
#pragma GCC unroll 4
  for (size_t pass = 1; pass < V::kLanes; pass *= 2) {
    V next[V::kLanes];
#pragma GCC unroll 8
    for (size_t i = 0; i < kHalf; ++i) {
      next[2 * i] = V::zip_low(rows[i], rows[i + kHalf]);
      next[2 * i + 1] = V::zip_high(rows[i], rows[i + kHalf]);
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < V::kLanes; ++i) rows[i] = next[i];
  }
}

}  // namespace tandem::kernels
