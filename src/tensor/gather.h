// Rows of an activation.
#pragma once

#include "tensor/context.h"

namespace tandem::tensor {

/// Rows `rows` of x [tokens, width], in that order.
array take_rows(const Context& context, const array& x, const std::vector<uint32_t>& rows);

}  // namespace tandem::tensor
