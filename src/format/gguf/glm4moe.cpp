// GLM 4.5 to 4.7.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

static Status complete_glm4moe(const GgufMetadata& metadata, nlohmann::json& config) {
  config["use_qk_norm"] = metadata.has(0, "attn_q_norm.weight");
  return check_gguf_gating(metadata, 2);
}

GgufArchitecture glm4moe() {
  GgufArchitecture out = {
      .name = "glm4moe", .model_type = "glm4_moe", .complete = complete_glm4moe};
  add_biased_experts(out);
  return out;
}

}  // namespace tandem::format::gguf_arch
