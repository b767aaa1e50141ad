// Matrices of E4M3 numbers with a power of two for every 32 of a row (MXFP8), as MiniMax M3 is
// published.
#pragma once

#include "format/layouts/derived_checkpoint.h"

namespace tandem::format {

/// Shows each `weight` of type F8_E4M3 whose `weight_scale_inv` are bytes, one for 32 columns, as
/// MLX's mxfp8: the same bytes under other names, never converted. Scales of other shapes are left
/// to add_fp8(). Errors: what describing tensors gives.
Status add_mxfp8(const Checkpoint& from, Derivations& derivations);

}  // namespace tandem::format
