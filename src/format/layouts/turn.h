// Matrices that are stored the other way round.
#pragma once

#include <cstddef>

namespace tandem::format {

/// Columns of a row-major matrix.
struct Columns {
  size_t height = 0;  // rows of the matrix
  size_t width = 0;   // all its columns
  size_t first = 0;
  size_t count = 0;
};

/// Writes the columns as rows, [count, height], of elements of `size` bytes: 1, 2, 4 or 8.
void turn(const std::byte* from, const Columns& columns, size_t size, std::byte* to);

}  // namespace tandem::format
