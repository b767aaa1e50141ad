// SwiGLU whose factors are kept within a limit, as Step 3.5 has it in some layers.
#pragma once

#include "kernels/activation.h"

namespace tandem::kernels {

/// out = g * u, where g is gate / (1 + exp(-gate)), at most `limit`, and u is up, within -limit and
/// limit. Requires limit > 0; out may be gate, not up.
void limited_swiglu(WorkerPool& pool, const GatedArgs& args, float limit);

}  // namespace tandem::kernels
