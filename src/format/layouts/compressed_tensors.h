// Integer weights as compressed-tensors keeps them.
#pragma once

#include "format/layouts/derived_checkpoint.h"

namespace tandem::format {

/// Shows modules of compressed-tensors in the affine layout:
/// - pack-quantized: weight_packed [outputs, inputs * bits / 32], I32 words of codes plus
///   2^(bits - 1), lowest bits first; zeros the same way, packed along the outputs, or as I8;
/// - int-quantized: weight [outputs, inputs] of type I8; zeros I8.
/// weight_scale is [outputs, groups], weight_g_idx gives the group of each input; the bits of
/// packed codes are those of config_groups. Errors name the tensor: kUnsupported (other packings),
/// kCorrupt.
Status add_compressed_integers(const Checkpoint& from,
                               const nlohmann::json& method,
                               Derivations& derivations);

}  // namespace tandem::format
