#include "model/arch/delta_layer.h"

namespace tandem::model::arch {
namespace {

constexpr uint64_t kWidestHeads = 1U << 24;  // all heads of a layer together

/// Every full_attention_interval-th layer attends, or those that layer_types says.
std::vector<bool> decode_delta_layers(const Json& json, uint32_t layers) {
  if (find(json, "layer_types") != nullptr)
    return decode_state_layers(json, "linear_attention", layers);
  const uint32_t interval =
      find(json, "full_attention_interval") ? count(json, "full_attention_interval") : 4;
  std::vector<bool> out(layers);
  for (uint32_t i = 0; i < layers; ++i) out[i] = (i + 1) % interval != 0;
  return out;
}

tensor::DeltaShape decode_delta_shape(const Json& json) {
  const tensor::DeltaShape out = {.key_heads = count(json, "linear_num_key_heads"),
                                  .value_heads = count(json, "linear_num_value_heads"),
                                  .key_dim = count(json, "linear_key_head_dim"),
                                  .value_dim = count(json, "linear_value_head_dim")};
  if (out.value_heads % out.key_heads != 0)
    refuse(ErrorCode::kCorrupt,
           fmt::format("linear_num_value_heads is {}, no multiple of linear_num_key_heads {}",
                       out.value_heads, out.key_heads));
  const uint64_t values = uint64_t{out.value_heads} * out.value_dim;
  if (uint64_t{out.key_heads} * out.key_dim > kWidestHeads || values > kWidestHeads ||
      values * out.key_dim > UINT32_MAX / 2)
    refuse(ErrorCode::kCorrupt,
           fmt::format("heads of linear attention are too many or too wide: linear_num_value_heads "
                       "is {}, linear_value_head_dim {}, linear_key_head_dim {}",
                       out.value_heads, out.value_dim, out.key_dim));
  return out;
}

/// Without what decode_base() would take for its own.
Json without_layer_types(Json json) {
  json.erase("layer_types");
  return json;
}

Config decode_experts_or_not(const Json& json) {
  if (real(json, "num_experts", 0) != 0) {
    Config c = decode_with_experts(json);
    c.shared_mlp = count(json, "shared_expert_intermediate_size");
    return c;
  }
  Config c = decode_silu(json);
  c.has_experts.assign(c.layers, false);
  return c;
}

/// Norms of a checkpoint as it was released lack a 1.
void settle_norms(const format::Checkpoint& checkpoint, Config& c) {
  for (uint32_t i = 0; i < c.layers; ++i) {
    const std::string conv = fmt::format("model.layers.{}.linear_attn.conv1d.weight", i);
    if (!c.is_recurrent[i] || !checkpoint.has(conv)) continue;
    const auto taps = checkpoint.describe(conv);
    const bool is_released = taps && !taps->shape.empty() && taps->shape.back() != 1;
    c.norm_offset = is_released ? 1 : 0;
    return;
  }
}

}  // namespace

Config decode_delta(const Json& json) {
  Config c = decode_experts_or_not(without_layer_types(json));
  c.is_recurrent = decode_delta_layers(json, c.layers);
  c.delta = decode_delta_shape(json);
  c.conv_taps = decode_taps(json, "linear_conv_kernel_dim");
  c.windows.assign(c.layers, 0);  // attention sees everything, whatever else the config says
  if (!flag(json, "attn_output_gate", true))
    refuse(ErrorCode::kUnsupported, "attn_output_gate is false; only gated attention is supported");
  return c;
}

Config decode_qwen3_5(const Json& json) {
  return decode_delta(with_defaults(
      json, {{"rope_theta", 100000.0}, {"partial_rotary_factor", 0.25}, {"norm_topk_prob", true}}));
}

Arch delta_decoder(std::string_view model_type, Result<Config> (*decode)(const nlohmann::json&)) {
  Arch out = decoder<DeltaLayer>(model_type, decode);
  out.settle = settle_norms;
  return out;
}

}  // namespace tandem::model::arch
