// The experts of gpt-oss as OpenAI and transformers publish them.
#pragma once

#include "format/checkpoint.h"

namespace tandem::format {

/// Shows the experts of a gpt-oss checkpoint in other layouts as mlx-lm converts them:
/// `experts.gate_proj`, `up_proj` and `down_proj`, each [experts, outputs, inputs] with `.bias`.
/// - The release: `gate_up_proj_blocks` [experts, outputs, groups, 16] and `_scales` [experts,
///   outputs, groups] are mxfp4, whose rows are gate's and up's by turns; so are those of `_bias`.
/// - transformers' without quantization: `gate_up_proj` [experts, inputs, outputs], columns by
///   turns, and `down_proj` alike.
/// Any other checkpoint is returned as it is. Errors: kCorrupt (a tensor of another shape).
Result<std::shared_ptr<const Checkpoint>> gpt_oss_experts(
    std::shared_ptr<const Checkpoint> checkpoint);

}  // namespace tandem::format
