// LFM2 with experts after its first layers.
#include "format/gguf/lfm2.h"

namespace tandem::format::gguf_arch {

static Status complete_lfm2moe(const GgufMetadata& metadata, nlohmann::json& config) {
  config["use_expert_bias"] = metadata.has(metadata.layers() - 1, "exp_probs_b.bias");
  if (Status gating = check_gguf_gating(metadata, 2); !gating) return gating;
  return complete_lfm2(metadata, config);
}

GgufArchitecture lfm2moe() {
  GgufArchitecture out = {.name = "lfm2moe",
                          .model_type = "lfm2_moe",
                          .names = lfm2_names(),
                          .fields = gguf_experts(),
                          .conversions = {{"conv.conv", with_last_axis}},
                          .complete = complete_lfm2moe};
  out.names.insert(out.names.end(), {{"ffn_gate_inp", "feed_forward.gate"},
                                     {"exp_probs_b.bias", "feed_forward.expert_bias"},
                                     {"ffn_gate_exps", "feed_forward.switch_mlp.gate_proj"},
                                     {"ffn_up_exps", "feed_forward.switch_mlp.up_proj"},
                                     {"ffn_gate_up_exps", "feed_forward.switch_mlp.gate_up_proj"},
                                     {"ffn_down_exps", "feed_forward.switch_mlp.down_proj"}});
  out.fields.insert(out.fields.end(), {{"conv_L_cache", "shortconv.l_cache"},
                                       {"num_dense_layers", "leading_dense_block_count", nullptr},
                                       {"norm_topk_prob", "expert_weights_norm", true},
                                       {"routed_scaling_factor", "expert_weights_scale", nullptr}});
  return out;
}

}  // namespace tandem::format::gguf_arch
