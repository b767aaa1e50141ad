// K-EXAONE.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

/// Three layers in four see a window where the file does not list them.
static Status complete_exaone_moe(const GgufMetadata& metadata, nlohmann::json& config) {
  constexpr uint64_t kUsualPattern = 4;
  if (!config.contains("layer_types")) {
    std::vector<bool> has_window;
    for (uint64_t i = 0; i < metadata.layers(); ++i)
      has_window.push_back((i + 1) % kUsualPattern != 0);
    config["layer_types"] = gguf_layer_types(has_window, "sliding_attention");
  }
  return check_gguf_gating(metadata, 2);
}

GgufArchitecture exaone_moe() {
  GgufArchitecture out = {.name = "exaone-moe",
                          .model_type = "exaone_moe",
                          .fields = {{"sliding_window", "attention.sliding_window", 128}},
                          .complete = complete_exaone_moe};
  add_biased_experts(out, "num_experts", "num_shared_experts");
  return out;
}

}  // namespace tandem::format::gguf_arch
