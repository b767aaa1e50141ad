// Hidden states of a step's tokens, summed up row by row.
#pragma once

#include "tensor/step.h"

namespace tandem::tensor {

/// x [tokens, width] → [step.pooled(), width] float32: of each such row the sum over its pooled
/// tokens. Requires the step to outlive the graph, and a row that is pooled.
array pooled_rows(const Context& context, const array& x, const Step& step);

}  // namespace tandem::tensor
