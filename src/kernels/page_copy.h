// Copies of whole pages inside a paged pool (copy on write).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/pool.h"

namespace tandem::kernels {

/// For each i < count, in order: page to[i] = page from[i] of pages [pages, page_floats].
void page_copy(WorkerPool& pool,
               float* pages,
               size_t page_floats,
               const uint32_t* from,
               const uint32_t* to,
               size_t count);

}  // namespace tandem::kernels
