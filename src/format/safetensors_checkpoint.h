// Folders with config.json and safetensors files, in the MLX or the Hugging Face layout.
#pragma once

#include "format/checkpoint.h"

namespace tandem::format {

Result<std::shared_ptr<const Checkpoint>> open_safetensors_checkpoint(
    const std::filesystem::path& directory);

/// A module's affine quantization as config.json's "quantization" gives it: per-module entry, else
/// the whole model's. `has_scales`: the checkpoint holds `<module>.scales`.
Result<std::optional<Quantization>> quantization_from_config(const nlohmann::json& config,
                                                             std::string_view module,
                                                             bool has_scales);

}  // namespace tandem::format
