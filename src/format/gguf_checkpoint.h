// A .gguf file seen through Hugging Face names and config.json keys.
#pragma once

#include "format/checkpoint.h"

namespace tandem::format {

/// A file, or the first of a model in several ("…-00001-of-00003.gguf"), whose others lie beside
/// it. What it holds is shown as the tables in gguf/ say. Errors name the file.
Result<std::shared_ptr<const Checkpoint>> open_gguf_checkpoint(const std::filesystem::path& path);

}  // namespace tandem::format
