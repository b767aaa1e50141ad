// Checkpoints of models that also see or hear: the language model inside.
#pragma once

#include "format/checkpoint.h"

namespace tandem::format {

/// Shows the language model of a checkpoint whose config has a text_config as if it stood alone:
/// hyper-parameters of text_config over those around it (but no null over a value), the text
/// model's type, and tensors under the names that it has alone (the prefixes language_model. and
/// model.language_model. are gone). Towers for images and sound, and what connects them, are left
/// out; notice() says so. Any other checkpoint is returned as it is. Layouts: mlx-lm's and
/// transformers' gemma3, gemma4, mistral3, qwen3_vl. Errors: kCorrupt (a text_config that is no
/// object, two tensors with one name).
Result<std::shared_ptr<const Checkpoint>> text_model(std::shared_ptr<const Checkpoint> checkpoint);

}  // namespace tandem::format
