// Turns rows of x into RowCodes, for any vector type.
#pragma once

#include <cmath>

#include "kernels/code_layout.h"
#include "kernels/matmul_task.h"

namespace tandem::kernels {

/// One group of a row: store(code, column) for each vector of codes; returns its scale, and its sum
/// of codes in `sum`.
template <class V, class Store>
[[gnu::always_inline]] inline float quantize_group(const float* x,
                                                   size_t columns,
                                                   Store store,
                                                   float& sum) {
  constexpr float kSmallest = 1e-30f;  // below, all codes are 0: their inverse would overflow
  V most = V::zero(), poison = V::zero();
  for (size_t k = 0; k < columns; k += V::kLanes) {
    const V value = V::load(x + k);
    most = V::max(most, value.absolute());
    poison = V::fma(value, V::zero(), poison);
  }
  const float greatest = most.greatest();
  const bool is_zero = greatest < kSmallest;
  const V inverse = V::all(is_zero ? 0.0f : RowCodes::kMost / greatest);
  V total = V::zero();
  for (size_t k = 0; k < columns; k += V::kLanes) {
    const V code = (V::load(x + k) * inverse).rounded();
    total = total + code;  // exact: below 2^24
    store(code, k);
  }
  sum = total.sum();
  return (is_zero ? 0.0f : greatest / RowCodes::kMost) + poison.sum();
}

/// Rows [begin, end) of x: store(codes, row, column) for each vector; fills the task's scales and
/// sums.
template <class V, class Store>
[[gnu::always_inline]] inline void quantize_rows(const MatmulTask& task,
                                                 const float* x,
                                                 size_t x_stride,
                                                 size_t begin,
                                                 size_t end,
                                                 Store store) {
  const size_t group = task.w->group();
  for (size_t r = begin; r < end; ++r) {
    for (size_t g = 0; g < task.groups; ++g) {
      float sum = 0.0f;
      const float scale = quantize_group<V>(
          x + r * x_stride + g * group, group,
          [&](V code, size_t k) __attribute__((always_inline)) { store(code, r, g * group + k); },
          sum);
      task.rows.scales[r * task.groups + g] = scale;
      task.rows.sums[r * task.groups + g] = scale * sum;
    }
  }
}

template <class V>
void prepare_rows(
    const MatmulTask& task, const float* x, size_t x_stride, size_t begin, size_t end) {
  const size_t inputs = task.w->inputs();
  quantize_rows<V>(task, x, x_stride, begin, end,
                   [&](V code, size_t row, size_t column) __attribute__((always_inline)) {
                     code.store_codes(task.rows.codes + row * inputs + column);
                   });
}

}  // namespace tandem::kernels
