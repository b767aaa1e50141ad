// DeepSeek V2 to V3.1, Kimi K2 and GLM 4.7 Flash, which files call alike.
#include "format/gguf/latent.h"

namespace tandem::format::gguf_arch {

/// By how experts are chosen, and GLM by its tokenizer: its latent norms have the eps of the
/// others.
static void name_deepseek2(const GgufMetadata& metadata, nlohmann::json& config) {
  const std::string* tokens = metadata.gguf().text("tokenizer.ggml.pre");
  const bool is_glm = tokens != nullptr && *tokens == "glm4";
  const bool is_sigmoid = metadata.number("expert_gating_func").value_or(is_glm ? 2 : 1) == 2;
  config["model_type"] = is_glm ? "glm4_moe_lite" : is_sigmoid ? "deepseek_v3" : "deepseek_v2";
  if (!is_sigmoid)
    config["topk_method"] = gguf_count(config, "n_group") > 1 ? "group_limited_greedy" : "greedy";
}

static Status complete_deepseek2(const GgufMetadata& metadata, nlohmann::json& config) {
  if (metadata.real("attention.temperature_scale").value_or(0) != 0)
    return Error{ErrorCode::kUnsupported,
                 "gguf: deepseek2.attention.temperature_scale is not supported"};
  name_deepseek2(metadata, config);
  return complete_latent(metadata, config);
}

GgufArchitecture deepseek2() {
  GgufArchitecture out = latent_architecture("deepseek2", "deepseek_v3");
  out.complete = complete_deepseek2;
  return out;
}

}  // namespace tandem::format::gguf_arch
