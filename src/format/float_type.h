// The type that a checkpoint computes in.
#pragma once

#include "format/checkpoint.h"

namespace tandem::format {

/// Whether it is float32: that of a projection of a layer, or of its scales, decides; where those
/// are all in bytes (mxfp4 and the like), that of norms. Otherwise it has 16 bits.
bool is_in_float32(const Checkpoint& checkpoint);

}  // namespace tandem::format
