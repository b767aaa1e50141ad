// Search for numbers that no model can compute with.
#pragma once

#include <cstddef>

#include "format/tensor.h"

namespace tandem::format {

/// A part of a row-major matrix, in elements.
struct Window {
  size_t width = 0;  // of a whole row
  size_t first_row = 0;
  size_t end_row = 0;
  size_t first_column = 0;
  size_t end_column = 0;
};

/// Whether no element of this part is NaN or infinite; true for types without such values. Costs
/// less than a copy of what it looks at.
bool is_finite(const Tensor& tensor, const Window& window);

/// The greatest byte of this part after `mask`, whose columns count bytes, whatever the type.
uint8_t greatest_byte(const Tensor& tensor, const Window& window, uint8_t mask);

}  // namespace tandem::format
