// Shares rows of small operations out, or runs them at once where that is faster.
#pragma once

#include <cstddef>

#include "kernels/pool.h"

namespace tandem::kernels {

/// fn(begin, end) over rows of `cost` floats touched each. Below some 10 µs of work, handing a loop
/// out costs more than it saves.
template <class F>
void share_rows(WorkerPool& pool, size_t rows, size_t cost, F&& fn) {
  constexpr size_t kInlineFloats = 32 * 1024;
  if (rows * cost < kInlineFloats) {
    fn(size_t{0}, rows);
  } else {
    pool.parallel_for(rows, fn);
  }
}

}  // namespace tandem::kernels
