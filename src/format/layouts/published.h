// Checkpoints as their publishers quantized them.
#pragma once

#include "format/checkpoint.h"

namespace tandem::format {

/// Shows a checkpoint whose config has a quantization_config of fp8, awq, gptq or
/// compressed-tensors in the forms that Checkpoint promises: dense bfloat16, or affine groups.
/// Scales of activations and of caches are left out: both are kept in their own precision here. A
/// checkpoint of mlx-lm, or one that is not quantized, is returned as it is. Errors: kUnsupported,
/// naming the method and what to do, for any other; those of the layouts.
Result<std::shared_ptr<const Checkpoint>> published_layout(
    std::shared_ptr<const Checkpoint> checkpoint);

}  // namespace tandem::format
