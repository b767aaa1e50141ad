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
  kRelu,
};

/// gated() on the fast path, whose arguments are bound.
void run_gated(kernels::WorkerPool& workers,
               Gate gate,
               float limit,
               const kernels::GatedArgs& args);

/// gate(x) * up, [tokens, width] each, where gate is an activation or the sigmoid. With a limit
/// above 0, for kSilu: gate(x) at most that, and up within it on both sides.
array gated(const Context& context, Gate gate, const array& x, const array& up, float limit = 0);

/// cap * tanh(x / cap), float32 as x. Requires cap > 0.
array softcap(const Context& context, const array& x, float cap);

/// Each run of a row of x times the sigmoid of its logit: [tokens, runs * width] and [tokens,
/// runs].
array times_sigmoid(const Context& context, const array& x, const array& logits);

/// x * factor.
array scaled(const Context& context, const array& x, float factor);

}  // namespace tandem::tensor
