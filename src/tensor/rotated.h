// Heads turned by their tokens' positions, outside of attention over keys.
#pragma once

#include "tensor/rope.h"
#include "tensor/step.h"

namespace tandem::tensor {

/// x [tokens, columns], of which the first `heads` runs of `head_dim` columns are turned and the
/// rest stays. The fast path turns them in x's own memory: requires nobody else to read x, and the
/// rope and the step to outlive the graph.
array rotated(const Context& context,
              const array& x,
              uint32_t heads,
              uint32_t head_dim,
              const Rope& rope,
              const Step& step);

}  // namespace tandem::tensor
