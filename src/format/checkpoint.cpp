#include "format/checkpoint.h"

#include "format/gguf_checkpoint.h"
#include "format/layouts/backbone.h"
#include "format/layouts/gpt_oss_experts.h"
#include "format/layouts/published.h"
#include "format/layouts/stacked_experts.h"
#include "format/safetensors_checkpoint.h"
#include "format/text_model.h"

namespace tandem::format {

Result<std::shared_ptr<const Checkpoint>> as_read(std::shared_ptr<const Checkpoint> stored) {
  auto text = text_model(std::move(stored));
  if (!text) return text;
  auto unpacked = published_layout(*std::move(text));
  if (unpacked) unpacked = gpt_oss_experts(*std::move(unpacked));
  if (unpacked) unpacked = stacked_experts(*std::move(unpacked));
  return unpacked ? without_backbone(*std::move(unpacked)) : unpacked;
}

Result<std::shared_ptr<const Checkpoint>> open_checkpoint(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    auto checkpoint = open_safetensors_checkpoint(path);
    return checkpoint ? as_read(*std::move(checkpoint)) : checkpoint;
  }
  if (!std::filesystem::exists(path, ignored)) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format(
            "no model at {}: expected a folder with config.json and *.safetensors, or a .gguf file",
            path.string())};
  }
  if (path.extension() == ".gguf") return open_gguf_checkpoint(path);
  return Error{ErrorCode::kUnsupported,
               fmt::format("{} is neither a folder nor a .gguf file: give the model's folder",
                           path.string())};
}

}  // namespace tandem::format
