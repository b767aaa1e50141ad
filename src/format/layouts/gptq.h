// GPTQ's layout of weights of 2, 3, 4 and 8 bits.
#pragma once

#include "format/layouts/derived_checkpoint.h"

namespace tandem::format {

/// Shows modules of AutoGPTQ and GPTQModel in the affine layout. qweight [inputs * bits / 32,
/// outputs] packs codes along the inputs, lowest bits first; qzeros [groups, outputs * bits / 32]
/// along the outputs, where checkpoint_format "gptq" keeps zero - 1 and "gptq_v2" the zero itself;
/// scales are [groups, outputs]; g_idx gives the group of each input.
/// Errors name the tensor: kCorrupt, kUnsupported (another checkpoint_format).
Status add_gptq(const Checkpoint& from, const nlohmann::json& method, Derivations& derivations);

}  // namespace tandem::format
