// Rows of an activation, and zeros in its place.
#pragma once

#include "tensor/context.h"

namespace tandem::tensor {

/// Rows `rows` of x [tokens, width], in that order.
array take_rows(const Context& context, const array& x, const std::vector<uint32_t>& rows);

/// Zeros [rows of x, width] that wait for x: a rank without a part adds them where others add
/// theirs, and must reach its exchanges in the same order as they.
array zeros_after(const Context& context, const array& x, uint32_t width);

}  // namespace tandem::tensor
