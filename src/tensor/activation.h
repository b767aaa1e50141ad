// Gated activations.
#pragma once

#include "tensor/context.h"

namespace tandem::tensor {

/// silu(gate) * up, [tokens, width] each.
array swiglu(const Context& context, const array& gate, const array& up);

}  // namespace tandem::tensor
