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
  return {.name = "exaone-moe",
          .model_type = "exaone_moe",
          .names = {{"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
                    {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
                    {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
                    {"ffn_down_shexp", "mlp.shared_experts.down_proj"}},
          .fields = {{"num_experts", "expert_count"},
                     {"num_experts_per_tok", "expert_used_count"},
                     {"moe_intermediate_size", "expert_feed_forward_length"},
                     {"num_shared_experts", "expert_shared_count", nullptr},
                     {"first_k_dense_replace", "leading_dense_block_count", nullptr},
                     {"n_group", "expert_group_count", nullptr},
                     {"topk_group", "expert_group_used_count", nullptr},
                     {"routed_scaling_factor", "expert_weights_scale", 1.0},
                     {"norm_topk_prob", "expert_weights_norm", false},
                     {"sliding_window", "attention.sliding_window", 128}},
          .complete = complete_exaone_moe};
}

}  // namespace tandem::format::gguf_arch
