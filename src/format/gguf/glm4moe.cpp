// GLM 4.5 to 4.7.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

static Status complete_glm4moe(const GgufMetadata& metadata, nlohmann::json& config) {
  config["use_qk_norm"] = metadata.has(0, "attn_q_norm.weight");
  return check_gguf_gating(metadata, 2);
}

GgufArchitecture glm4moe() {
  return {.name = "glm4moe",
          .model_type = "glm4_moe",
          .names = {{"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
                    {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
                    {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
                    {"ffn_down_shexp", "mlp.shared_experts.down_proj"}},
          .fields = {{"n_routed_experts", "expert_count"},
                     {"num_experts_per_tok", "expert_used_count"},
                     {"moe_intermediate_size", "expert_feed_forward_length"},
                     {"n_shared_experts", "expert_shared_count", nullptr},
                     {"first_k_dense_replace", "leading_dense_block_count", nullptr},
                     {"n_group", "expert_group_count", nullptr},
                     {"topk_group", "expert_group_used_count", nullptr},
                     {"routed_scaling_factor", "expert_weights_scale", 1.0},
                     {"norm_topk_prob", "expert_weights_norm", false}},
          .complete = complete_glm4moe};
}

}  // namespace tandem::format::gguf_arch
