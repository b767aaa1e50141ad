// DeepSeek V2 to V3.1, Kimi K2 and GLM 4.7 Flash, which files call alike.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

/// By how experts are chosen, and GLM by its tokenizer: its latent norms have the eps of the
/// others.
static void name_deepseek2(const GgufMetadata& metadata, nlohmann::json& config) {
  const std::string* tokens = metadata.gguf().text("tokenizer.ggml.pre");
  const bool is_glm = tokens != nullptr && *tokens == "glm4";
  const bool is_sigmoid = metadata.number("expert_gating_func").value_or(is_glm ? 2 : 1) == 2;
  config["model_type"] = is_glm ? "glm4_moe_lite" : is_sigmoid ? "deepseek_v3" : "deepseek_v2";
  if (!is_sigmoid)
    config["topk_method"] = config.contains("n_group") ? "group_limited_greedy" : "greedy";
}

static Status complete_deepseek2(const GgufMetadata& metadata, nlohmann::json& config) {
  if (metadata.real("attention.temperature_scale").value_or(0) != 0)
    return Error{ErrorCode::kUnsupported,
                 "gguf: deepseek2.attention.temperature_scale is not supported"};
  // Files with kv_b in two parts give the width of latent keys as key_length, and that of heads
  // apart; older ones only that of heads.
  const auto key = metadata.number("attention.key_length_mla");
  const auto value = metadata.number("attention.value_length_mla");
  const uint64_t heads = key.value_or(metadata.number("attention.key_length").value_or(0));
  const uint64_t rope = gguf_count(config, "qk_rope_head_dim");
  if (heads <= rope)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("gguf: deepseek2.attention.key_length_mla should be above "
                             "rope.dimension_count {}, is {}",
                             rope, heads)};
  config["qk_nope_head_dim"] = heads - rope;
  config["v_head_dim"] = value.value_or(metadata.number("attention.value_length").value_or(0));
  config["num_key_value_heads"] = config["num_attention_heads"];
  for (const char* of_others : {"head_dim", "partial_rotary_factor"}) config.erase(of_others);
  name_deepseek2(metadata, config);
  if (!metadata.has(0, "attn_q_a.weight")) config.erase("q_lora_rank");
  // The converter writes a tenth of mscale_all_dim, which equals mscale wherever these are said.
  const auto scaling = config.find("rope_scaling");
  if (scaling != config.end() && scaling->contains("mscale_all_dim"))
    (*scaling)["mscale"] = (*scaling)["mscale_all_dim"] =
        (*scaling)["mscale_all_dim"].get<double>() / 0.1;
  return {};
}

GgufArchitecture deepseek2() {
  return {.name = "deepseek2",
          .model_type = "deepseek_v3",
          .names = {{"attn_q_a", "self_attn.q_a_proj"},
                    {"attn_q_a_norm", "self_attn.q_a_layernorm"},
                    {"attn_q_b", "self_attn.q_b_proj"},
                    {"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
                    {"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
                    {"attn_kv_b", "self_attn.kv_b_proj"},
                    {"attn_k_b", "self_attn.embed_q"},
                    {"attn_v_b", "self_attn.unembed_out"},
                    {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
                    {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
                    {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
                    {"ffn_down_shexp", "mlp.shared_experts.down_proj"}},
          .fields = {{"q_lora_rank", "attention.q_lora_rank", nullptr},
                     {"kv_lora_rank", "attention.kv_lora_rank"},
                     {"qk_rope_head_dim", "rope.dimension_count"},
                     {"n_routed_experts", "expert_count"},
                     {"num_experts_per_tok", "expert_used_count"},
                     {"moe_intermediate_size", "expert_feed_forward_length"},
                     {"n_shared_experts", "expert_shared_count", nullptr},
                     {"first_k_dense_replace", "leading_dense_block_count", nullptr},
                     {"n_group", "expert_group_count", nullptr},
                     {"topk_group", "expert_group_used_count", nullptr},
                     {"routed_scaling_factor", "expert_weights_scale", 1.0},
                     {"norm_topk_prob", "expert_weights_norm", false}},
          .complete = complete_deepseek2};
}

}  // namespace tandem::format::gguf_arch
