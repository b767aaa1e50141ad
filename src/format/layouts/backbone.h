// Names of Mamba 2 and its hybrids, whose modules lie below "backbone".
#pragma once

#include <memory>

#include "format/checkpoint.h"

namespace tandem::format {

/// Shows backbone.embeddings as model.embed_tokens, backbone.norm_f as model.norm and every other
/// backbone.X as model.X, so that all families have one set of names. Another checkpoint is
/// returned as it is. Errors: those of Checkpoint::quantization, kCorrupt (a name that is there
/// already).
Result<std::shared_ptr<const Checkpoint>> without_backbone(
    std::shared_ptr<const Checkpoint> checkpoint);

}  // namespace tandem::format
