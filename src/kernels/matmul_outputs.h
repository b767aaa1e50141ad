// Writing a product's finished outputs, and loops over row counts, for any vector type.
#pragma once

#include <cstddef>

#include "kernels/matmul_task.h"
#include "kernels/with_count.h"

namespace tandem::kernels {

/// Vectors of a panel's 16 outputs.
template <class V>
inline constexpr int kPanelVecs = static_cast<int>(PackedMatrix::kPanel / V::kLanes);

/// Finishes one vector of outputs [n, n + lanes) of a row, of which `count` exist: bias,
/// accumulation, and the end of the row.
template <class V>
[[gnu::always_inline]] inline void put(
    const MatmulArgs& args, float* y, size_t n, V sum, size_t count) {
  if (count >= V::kLanes) [[likely]] {
    if (args.bias != nullptr) sum = sum + V::load(args.bias + n);
    if (args.accumulate) sum = V::load(y + n) + sum;
    return sum.store(y + n);
  }
  if (args.bias != nullptr) sum = sum + V::load(args.bias + n, count);
  if (args.accumulate) sum = V::load(y + n, count) + sum;
  sum.store(y + n, count);
}

template <class V>
[[gnu::always_inline]] inline void put_panel(const MatmulTask& task,
                                             size_t row,
                                             size_t panel,
                                             const V (&sums)[kPanelVecs<V>]) {
  float* y = task.args.y + row * task.args.y_stride;
  size_t n = panel * PackedMatrix::kPanel;
  for (int v = 0; v < kPanelVecs<V> && n < task.w->outputs(); ++v, n += V::kLanes)
    put(task.args, y, n, sums[v], task.w->outputs() - n);
}

/// Rows [row, row + rows) of a block in tiles of at most kMost: f(first row, constant count).
template <int kMost, class F>
[[gnu::always_inline]] inline void for_tiles(size_t row, size_t rows, F f) {
  for (const size_t end = row + rows; row < end;) {
    const size_t count = end - row < kMost ? end - row : kMost;
    with_count<kMost>(count, [&](auto constant) { f(row, constant); });
    row += count;
  }
}

}  // namespace tandem::kernels
