// MiniMax M2.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

/// rope.dimension_count has become a partial rope, which the family reads as rotary_dim too.
static Status complete_minimax_m2(const GgufMetadata& metadata, nlohmann::json& config) {
  config["intermediate_size"] = config["moe_intermediate_size"];
  config["use_qk_norm"] = metadata.has(0, "attn_q_norm.weight");
  return check_gguf_gating(metadata, 2);
}

GgufArchitecture minimax_m2() {
  return {.name = "minimax-m2",
          .model_type = "minimax",
          .names = {{"ffn_gate_inp", "block_sparse_moe.gate"},
                    {"exp_probs_b.bias", "block_sparse_moe.e_score_correction_bias"},
                    {"ffn_gate_exps", "block_sparse_moe.switch_mlp.gate_proj"},
                    {"ffn_up_exps", "block_sparse_moe.switch_mlp.up_proj"},
                    {"ffn_gate_up_exps", "block_sparse_moe.switch_mlp.gate_up_proj"},
                    {"ffn_down_exps", "block_sparse_moe.switch_mlp.down_proj"}},
          .fields = {{"num_local_experts", "expert_count"},
                     {"num_experts_per_tok", "expert_used_count"},
                     {"moe_intermediate_size", "expert_feed_forward_length"}},
          .complete = complete_minimax_m2};
}

}  // namespace tandem::format::gguf_arch
