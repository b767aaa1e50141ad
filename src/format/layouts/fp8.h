// Weights in 8-bit floating point with scales for blocks of them.
#pragma once

#include "format/layouts/derived_checkpoint.h"

namespace tandem::format {

/// Shows every tensor X of type F8_E4M3 as bfloat16: each number times the scale of its block,
/// rounded once, as mlx-lm does. Its scales are X_scale_inv (deepseek_v3, minimax, qwen3) or
/// X_scale (compressed-tensors): one, one for each row, or one for each block of config.json's
/// weight_block_size, 128 by 128 by default, the last blocks of a side smaller. Of a stack
/// [n, rows, columns] each matrix has its own, or all share one.
/// Errors name the tensor: kCorrupt (no scales, or of another shape), kUnsupported (F8_E5M2, and
/// scales that are F8_E4M3 themselves, as in NVFP4).
Status add_fp8(const Checkpoint& from, Derivations& derivations);

}  // namespace tandem::format
