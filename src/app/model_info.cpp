#include "app/model_info.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/model_sizes.h"

namespace tandem::app {

chat::ModelInfo model_info(const nlohmann::json& config, uint32_t context) {
  chat::ModelInfo info;
  if (config.is_object()) {
    const auto family = config.find("model_type");
    if (family != config.end() && family->is_string()) info.family = *family;
  }
  const auto sizes = format::read_sizes(config);
  if (!sizes) return info;
  info.vocab = sizes->vocab;
  info.native_context = sizes->max_positions;
  info.max_context = context == 0 ? info.native_context : std::min(context, info.native_context);
  info.max_output = info.max_context;
  return info;
}

chat::ModelInfo model_info(const format::Checkpoint& checkpoint, uint32_t context) {
  chat::ModelInfo info = model_info(checkpoint.config(), context);
  info.container = checkpoint.gguf() ? "gguf" : "safetensors";
  info.weight_bytes = checkpoint.weight_bytes();
  return info;
}

std::string context_notice(const chat::ModelInfo& info, uint32_t context) {
  if (info.native_context == 0 || context <= info.native_context) return {};
  return fmt::format(
      "--context {} is more than the {} tokens that the model was made for: requests may have {}",
      context, info.native_context, info.max_context);
}

}  // namespace tandem::app
