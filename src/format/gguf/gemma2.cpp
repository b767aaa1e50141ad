// Gemma 2. Norms hold the 1 that the model adds to them.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

/// What queries are scaled by is the width of their heads, but for the model of 46 layers.
static Status complete_gemma2(const GgufMetadata& metadata, nlohmann::json& config) {
  constexpr uint64_t kLayersOf27B = 46;
  if (metadata.layers() == kLayersOf27B)
    config["query_pre_attn_scalar"] =
        gguf_count(config, "hidden_size") / gguf_count(config, "num_attention_heads");
  else
    config["query_pre_attn_scalar"] = config["head_dim"];
  return {};
}

GgufArchitecture gemma2() {
  return {.name = "gemma2",
          .model_type = "gemma2",
          .names = {{"ffn_norm", "pre_feedforward_layernorm"},
                    {"post_ffw_norm", "post_feedforward_layernorm"}},
          .fields = {{"head_dim", "attention.key_length"},
                     {"attn_logit_softcapping", "attn_logit_softcapping", 50.0},
                     {"final_logit_softcapping", "final_logit_softcapping", 30.0},
                     {"sliding_window", "attention.sliding_window", 4096}},
          .conversions = {{"norm", without_one}},
          .complete = complete_gemma2};
}

}  // namespace tandem::format::gguf_arch
