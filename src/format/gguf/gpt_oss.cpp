// gpt-oss, whose yarn blends between broken pairs.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

static Status complete_gpt_oss(const GgufMetadata&, nlohmann::json& config) {
  config["intermediate_size"] = config["moe_intermediate_size"];
  if (config.contains("rope_scaling")) config["rope_scaling"]["truncate"] = false;
  return {};
}

GgufArchitecture gpt_oss() {
  return {.name = "gpt-oss",
          .model_type = "gpt_oss",
          .names = {{"attn_sinks.weight", "self_attn.sinks"}, {"ffn_gate_inp", "mlp.router"}},
          .fields = {{"num_local_experts", "expert_count"},
                     {"num_experts_per_tok", "expert_used_count"},
                     {"moe_intermediate_size", "expert_feed_forward_length"}},
          .complete = complete_gpt_oss};
}

}  // namespace tandem::format::gguf_arch
