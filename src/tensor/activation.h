// Activations: gated ones of MLPs, and caps.
#pragma once

#include "kernels/activation.h"
#include "tensor/context.h"

namespace tandem::tensor {

enum class Gate : uint8_t {
  kSilu,
  kGeluTanh,  // gelu with the tanh approximation
  kSigmoid,
  kClamped,  // gpt-oss' (kernels/activation.h: clamped_swiglu)
};

/// Of the fast path.
using GatedKernel = void (*)(kernels::WorkerPool&, const kernels::GatedArgs&);
GatedKernel gated_kernel(Gate gate);

/// gate(x) * up, [tokens, width] each, where gate is an activation or the sigmoid.
array gated(const Context& context, Gate gate, const array& x, const array& up);

/// cap * tanh(x / cap), float32 as x. Requires cap > 0.
array softcap(const Context& context, const array& x, float cap);

/// Each row of x times the sigmoid of its logit: [tokens, width] and [tokens, 1].
array times_sigmoid(const Context& context, const array& x, const array& logits);

/// x * factor.
array scaled(const Context& context, const array& x, float factor);

}  // namespace tandem::tensor
