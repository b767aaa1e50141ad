// Ministral 3 and Devstral 2, whose queries grow with their position, and Mistral Small 3.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

static Status complete_mistral3(const GgufMetadata& metadata, nlohmann::json& config) {
  const auto growth = metadata.real("attention.temperature_scale");
  if (!growth || *growth == 0) return {};
  config["model_type"] = "ministral3";
  nlohmann::json rope = config.value("rope_scaling", nlohmann::json::object());
  config.erase("rope_scaling");
  rope["rope_theta"] = config["rope_theta"];
  rope["llama_4_scaling_beta"] = *growth;
  config["rope_parameters"] = std::move(rope);
  return {};
}

GgufArchitecture mistral3() {
  return {.name = "mistral3",
          .model_type = "mistral",
          .fields = {{"rope_traditional", "", true}},
          .complete = complete_mistral3};
}

}  // namespace tandem::format::gguf_arch
