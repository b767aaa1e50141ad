// A .gguf file seen through Hugging Face names and config.json keys.
#pragma once

#include "format/checkpoint.h"

namespace tandem::format {

Result<std::shared_ptr<const Checkpoint>> open_gguf_checkpoint(const std::filesystem::path& path);

/// The Hugging Face name of a GGUF tensor of the llama family, such as
/// "model.layers.3.mlp.up_proj.weight" for "blk.3.ffn_up.weight"; empty when there is none.
std::string hugging_face_name(std::string_view gguf_name, std::string_view model_type = {});

/// config.json from GGUF metadata. kUnsupported names an architecture that is not known.
Result<nlohmann::json> config_from_gguf(const Gguf& gguf);

}  // namespace tandem::format
