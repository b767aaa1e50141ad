// Gemma 3 without its vision tower. Norms hold the 1 that the model adds to them.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

/// What queries are scaled by is the width of their heads, but for the model of 62 layers.
static Status complete_gemma3(const GgufMetadata& metadata, nlohmann::json& config) {
  constexpr uint64_t kLayersOf27B = 62;
  const bool is_27b = metadata.layers() == kLayersOf27B;
  config["query_pre_attn_scalar"] =
      is_27b ? gguf_count(config, "hidden_size") / gguf_count(config, "num_attention_heads")
             : gguf_count(config, "head_dim");
  if (!config.contains("sliding_window"))  // none of the layers has one
    config["layer_types"] = gguf_layer_types(std::vector<bool>(metadata.layers()), "");
  if (metadata.real("final_logit_softcapping").value_or(0) != 0)
    return Error{ErrorCode::kUnsupported,
                 "gguf: gemma3.final_logit_softcapping is not supported in this architecture"};
  return {};
}

GgufArchitecture gemma3() {
  return {.name = "gemma3",
          .model_type = "gemma3_text",
          .names = {{"ffn_norm", "pre_feedforward_layernorm"},
                    {"post_ffw_norm", "post_feedforward_layernorm"}},
          .fields = {{"head_dim", "attention.key_length"},
                     {"rope_theta", "rope.freq_base", 1e6},
                     {"rope_local_base_freq", "rope.freq_base_swa", 1e4},
                     {"sliding_window", "attention.sliding_window", nullptr},
                     {"sliding_window_pattern", "", 6}},
          .conversions = {{"norm", without_one}},
          .complete = complete_gemma3};
}

}  // namespace tandem::format::gguf_arch
