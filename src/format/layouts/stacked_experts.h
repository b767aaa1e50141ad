// Experts that transformers keeps in one tensor.
#pragma once

#include "format/checkpoint.h"

namespace tandem::format {

/// Shows X.experts.gate_up_proj and X.experts.down_proj as X.switch_mlp.gate_proj, up_proj and
/// down_proj (.weight), [experts, outputs, inputs], a row an expert. Both orders of transformers
/// are read, told apart by their shapes: [experts, 2 * width, hidden] beside [experts, hidden,
/// width] (qwen3_5_moe, mistral4), and each matrix transposed (qwen3_vl_moe, llama4). gate is the
/// first half. A checkpoint without such tensors, or with biases of them (gpt_oss), is returned as
/// it is. Errors: kCorrupt (shapes that do not belong together), naming the tensor.
Result<std::shared_ptr<const Checkpoint>> stacked_experts(
    std::shared_ptr<const Checkpoint> checkpoint);

}  // namespace tandem::format
