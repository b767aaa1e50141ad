#include "kernels/page_copy.h"

#include <algorithm>

namespace tandem::kernels {

void page_copy(WorkerPool& pool,
               float* pages,
               size_t page_floats,
               const uint32_t* from,
               const uint32_t* to,
               size_t count) {
  // Each worker copies its part of every page, so that the order of the copies holds.
  pool.parallel_for(page_floats, [&](size_t begin, size_t end) {
    for (size_t i = 0; i < count; ++i) {
      const float* source = pages + from[i] * page_floats;
      std::copy(source + begin, source + end, pages + to[i] * page_floats + begin);
    }
  });
}

}  // namespace tandem::kernels
