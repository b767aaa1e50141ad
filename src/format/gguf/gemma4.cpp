// Gemma 4 without its towers.
#include <algorithm>

#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {
namespace {

using Json = nlohmann::json;

/// The value of a layer that sees a window, or of one that sees everything: numbers are for all.
std::optional<uint64_t> of_kind(const GgufMetadata& metadata,
                                std::string_view key,
                                bool has_window) {
  if (const auto one = metadata.number(key)) return one;
  const auto values = metadata.list(key);
  const auto windows = metadata.list("attention.sliding_window_pattern");
  for (size_t i = 0; i < std::min(values.size(), windows.size()); ++i)
    if ((windows[i] != 0) == has_window) return static_cast<uint64_t>(values[i]);
  return std::nullopt;
}

/// Values of layers that see everything are their keys where such a layer has keys alone.
bool has_equal_kv(const GgufMetadata& metadata) {
  for (uint64_t i = 0; i < metadata.layers(); ++i)
    if (metadata.has(i, "attn_k.weight") && !metadata.has(i, "attn_v.weight")) return true;
  return false;
}

/// Pairs that are not turned have a divisor beyond all numbers.
Result<double> turned_part(const GgufMetadata& metadata) {
  constexpr float kTurned = 1e10F;
  const auto divisors = metadata.floats("rope_freqs.weight");
  if (!divisors) return divisors.error();
  const auto turned = std::ranges::count_if(*divisors, [](float each) { return each < kTurned; });
  return static_cast<double>(turned) / static_cast<double>(std::max<size_t>(1, divisors->size()));
}

Status add_ropes(const GgufMetadata& metadata, Json& config) {
  const auto part = turned_part(metadata);
  if (!part) return part.error();
  config["rope_parameters"] = {
      {"full_attention",
       {{"rope_type", "proportional"},
        {"partial_rotary_factor", *part},
        {"rope_theta", config["rope_theta"]}}},
      {"sliding_attention",
       {{"rope_type", "default"},
        {"rope_theta", metadata.real("rope.freq_base_swa").value_or(10000.0)}}}};
  for (const char* of_others : {"rope_scaling", "partial_rotary_factor"}) config.erase(of_others);
  return {};
}

Status add_widths(const GgufMetadata& metadata, Json& config) {
  const auto widths = metadata.list("feed_forward_length");
  if (!widths.empty()) config["intermediate_size"] = widths.front();
  config["use_double_wide_mlp"] = !widths.empty() && widths.back() > widths.front();
  config["global_head_dim"] = config["head_dim"];
  config["head_dim"] = metadata.number("attention.key_length_swa").value_or(0);
  const auto kv_heads = of_kind(metadata, "attention.head_count_kv", true);
  if (kv_heads) config["num_key_value_heads"] = *kv_heads;
  config["attention_k_eq_v"] = has_equal_kv(metadata);
  if (const auto few = of_kind(metadata, "attention.head_count_kv", false))
    config["num_global_key_value_heads"] = *few;
  return {};
}

Status complete_gemma4(const GgufMetadata& metadata, Json& config) {
  if (!config.contains("layer_types"))
    return Error{ErrorCode::kCorrupt,
                 "gguf: gemma4.attention.sliding_window and its pattern are missing"};
  if (Status added = add_widths(metadata, config); !added) return added;
  config["num_kv_shared_layers"] = metadata.number("attention.shared_kv_layers").value_or(0);
  config["hidden_size_per_layer_input"] =
      metadata.number("embedding_length_per_layer_input").value_or(0);
  config["vocab_size_per_layer_input"] = config["vocab_size"];
  config["final_logit_softcapping"] = metadata.value("final_logit_softcapping");
  config["enable_moe_block"] = config.contains("num_experts");
  return add_ropes(metadata, config);
}

std::vector<GgufName> gemma4_names() {
  return {{"per_layer_token_embd", "model.embed_tokens_per_layer"},
          {"per_layer_model_proj", "model.per_layer_model_projection"},
          {"per_layer_proj_norm", "model.per_layer_projection_norm"},
          {"ffn_norm", "pre_feedforward_layernorm"},
          {"post_ffw_norm", "post_feedforward_layernorm"},
          {"pre_ffw_norm_2", "pre_feedforward_layernorm_2"},
          {"post_ffw_norm_1", "post_feedforward_layernorm_1"},
          {"post_ffw_norm_2", "post_feedforward_layernorm_2"},
          {"layer_output_scale.weight", "layer_scalar"},
          {"inp_gate", "per_layer_input_gate"},
          {"proj", "per_layer_projection"},
          {"post_norm", "post_per_layer_input_norm"},
          {"ffn_gate_inp", "router.proj"},
          {"ffn_gate_inp.scale", "router.scale"},
          {"ffn_down_exps.scale", "router.per_expert_scale"},
          {"ffn_gate_exps", "experts.switch_glu.gate_proj"},
          {"ffn_up_exps", "experts.switch_glu.up_proj"},
          {"ffn_gate_up_exps", "experts.switch_glu.gate_up_proj"},
          {"ffn_down_exps", "experts.switch_glu.down_proj"}};
}

}  // namespace

GgufArchitecture gemma4() {
  return {.name = "gemma4",
          .model_type = "gemma4_text",
          .names = gemma4_names(),
          .fields = {{"head_dim", "attention.key_length"},
                     {"num_experts", "expert_count", nullptr},
                     {"top_k_experts", "expert_used_count", nullptr},
                     {"moe_intermediate_size", "expert_feed_forward_length", nullptr}},
          .complete = complete_gemma4};
}

}  // namespace tandem::format::gguf_arch
