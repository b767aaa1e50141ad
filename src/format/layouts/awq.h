// AutoAWQ's layout of 4-bit weights.
#pragma once

#include "format/layouts/derived_checkpoint.h"

namespace tandem::format {

/// Shows modules of AWQ's "gemm" version in the affine layout. qweight [inputs, outputs / 8] and
/// qzeros [groups, outputs / 8] are I32 words whose eight outputs lie in the order 0 2 4 6 1 3 5 7,
/// lowest bits first; scales are [groups, outputs]. Without qzeros every zero is 8.
/// Errors name the tensor: kUnsupported (another version, another number of bits), kCorrupt.
Status add_awq(const Checkpoint& from, const nlohmann::json& method, Derivations& derivations);

}  // namespace tandem::format
