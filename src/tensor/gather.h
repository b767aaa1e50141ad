// Rows of an activation, columns side by side, and zeros in its place.
#pragma once

#include "tensor/step.h"

namespace tandem::tensor {

/// Rows `rows` of x [tokens, width], in that order. Plain path.
array take_rows(const array& x, const std::vector<uint32_t>& rows);

/// Rows of x [tokens, width] whose logits the step wants, in their order. Requires the step to
/// outlive the graph.
array take_outputs(const Context& context, const array& x, const Step& step);

/// x [tokens, n * width] cut by columns: n times [tokens, width].
std::vector<array> split_columns(const Context& context, const array& x, uint32_t width);

/// Matrices [tokens, any] side by side.
array join_columns(const Context& context, std::vector<array> parts);

/// Zeros [rows of x, width] that wait for x: a rank without a part adds them where others add
/// theirs, and must reach its exchanges in the same order as they.
array zeros_after(const Context& context, const array& x, uint32_t width);

}  // namespace tandem::tensor
