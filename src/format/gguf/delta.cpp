#include "format/gguf/delta.h"

namespace tandem::format::gguf_arch {
namespace {

/// The last of so many layers attends, where there is no list of them.
constexpr uint64_t kUsualInterval = 4;
constexpr uint64_t kMostHeads = 1 << 16;  // also numbers of each

/// Conversions count on these.
Status check_heads(const nlohmann::json& config) {
  const uint64_t keys = gguf_count(config, "linear_num_key_heads");
  const uint64_t values = gguf_count(config, "linear_num_value_heads");
  const uint64_t width = gguf_count(config, "linear_key_head_dim");
  if (keys != 0 && values % keys == 0 && values != 0 && values <= kMostHeads && width != 0 &&
      width <= kMostHeads)
    return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("gguf: ssm.group_count {}, ssm.time_step_rank {} and ssm.state_size {} "
                           "are no heads of linear attention",
                           keys, values, width)};
}

Status complete_delta(const GgufMetadata& metadata, nlohmann::json& config) {
  const auto listed = metadata.list("attention.recurrent_layers");
  const uint64_t interval = metadata.number("full_attention_interval").value_or(kUsualInterval);
  const uint64_t layers = metadata.layers();
  const bool is_listed = listed.size() >= layers;
  if (!is_listed && interval == 0)
    return Error{ErrorCode::kCorrupt, fmt::format("gguf: metadata {} should be above 0",
                                                  metadata.full("full_attention_interval"))};
  std::vector<bool> is_recurrent;
  for (uint64_t i = 0; i < layers; ++i)
    is_recurrent.push_back(is_listed ? listed[i] != 0 : (i + 1) % interval != 0);
  config["layer_types"] = gguf_layer_types(is_recurrent, "linear_attention");
  if (Status fits = check_heads(config); !fits) return fits;
  const uint64_t heads = gguf_count(config, "linear_num_value_heads");
  const uint64_t all = metadata.number("ssm.inner_size").value_or(0);
  if (all == 0 || all % heads != 0)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("gguf: metadata {} should be a multiple of the {} heads, is {}",
                             metadata.full("ssm.inner_size"), heads, all)};
  config["linear_value_head_dim"] = all / heads;
  return {};
}

}  // namespace

GgufArchitecture delta_architecture(std::string_view name, std::string_view model_type) {
  return {.name = name,
          .model_type = model_type,
          .names = {{"attn_qkv", "linear_attn.in_proj_qkv"},
                    {"attn_gate", "linear_attn.in_proj_z"},
                    {"ssm_beta", "linear_attn.in_proj_b"},
                    {"ssm_alpha", "linear_attn.in_proj_a"},
                    {"ssm_conv1d", "linear_attn.conv1d"},
                    {"ssm_dt.bias", "linear_attn.dt_bias"},
                    {"ssm_a", "linear_attn.A_log"},
                    {"ssm_norm", "linear_attn.norm"},
                    {"ssm_out", "linear_attn.out_proj"}},
          .fields = {{"linear_num_key_heads", "ssm.group_count"},
                     {"linear_num_value_heads", "ssm.time_step_rank"},
                     {"linear_key_head_dim", "ssm.state_size"},
                     {"linear_conv_kernel_dim", "ssm.conv_kernel"}},
          .complete = complete_delta};
}

void add_delta_experts(GgufArchitecture& architecture) {
  for (const GgufField& field : gguf_experts()) architecture.fields.push_back(field);
  architecture.fields.push_back(
      {"shared_expert_intermediate_size", "expert_shared_feed_forward_length"});
  architecture.fields.push_back({"norm_topk_prob", "expert_weights_norm", true});
  architecture.names.insert(architecture.names.end(),
                            {{"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
                             {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
                             {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
                             {"ffn_down_shexp", "mlp.shared_expert.down_proj"}});
  architecture.conversions.push_back({"shared_expert_gate", as_matrix});
}

}  // namespace tandem::format::gguf_arch
