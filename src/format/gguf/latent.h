// What architectures with latent attention share.
#pragma once

#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

/// Names and fields; experts, the first layers without them.
GgufArchitecture latent_architecture(std::string_view name, std::string_view model_type);

/// Widths of heads, which files say in two ways, and yarn's magnitudes.
Status complete_latent(const GgufMetadata& metadata, nlohmann::json& config);

/// The indexer that chooses keys: its names and fields.
void add_indexer(GgufArchitecture& architecture);

}  // namespace tandem::format::gguf_arch
