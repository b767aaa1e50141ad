// MiMo V2 Flash: layers that see a window have heads, a rope and sinks of their own; values are
// narrower than keys; experts by a biased sigmoid in some layers.
#include "model/arch/moe_layer.h"

namespace tandem::model::arch {
namespace {

struct MimoV2Layer : MoeLayer {
  MimoV2Layer(const Config& c, const Weights& w, uint32_t index)
      : MoeLayer(
            c,
            w,
            index,
            {.attention = {.has_sinks = c.sees_window(index) ? c.has_window_sinks : c.has_sinks,
                           .names = {.sinks = "attention_sink_bias"}},
             .experts = {.bias = "gate.e_score_correction_bias", .shared = "shared_experts"}}) {}
};

/// A 0 or a 1 for each layer.
std::vector<bool> decode_marks(const Json& json, const char* key, uint32_t layers) {
  const Json* marks = find(json, key);
  if (marks == nullptr || !marks->is_array() || marks->size() != layers)
    refuse(ErrorCode::kCorrupt, fmt::format("{} should have one entry for each layer", key));
  std::vector<bool> out;
  for (const Json& mark : *marks) {
    if (mark != 0 && mark != 1)
      refuse(ErrorCode::kCorrupt, fmt::format("{} lists {}: 0 and 1 are known", key, mark.dump()));
    out.push_back(mark == 1);
  }
  return out;
}

/// The fields under the names that other decoders read, and none that mean something else there.
Json as_others(const Json& json) {
  Json out = json;
  out["rms_norm_eps"] = above_zero(json, "layernorm_epsilon");
  for (const char* own : {"moe_layer_freq", "layer_types", "use_sliding_window"}) out.erase(own);
  return out;
}

void refuse_unknown_layouts(const Json& json) {
  require_text(json, "attention_projection_layout", "split");
  if (find(json, "rope_parameters") != nullptr)
    refuse(ErrorCode::kUnsupported,
           "rope_parameters is not supported; rope_theta and swa_rope_theta are");
}

void decode_mimo_windows(const Json& json, Config& c) {
  const bool has_size = find(json, "sliding_window_size") != nullptr;
  const uint32_t window = count(json, has_size ? "sliding_window_size" : "sliding_window");
  const auto sees_window = decode_marks(json, "hybrid_layer_pattern", c.layers);
  for (uint32_t i = 0; i < c.layers; ++i) c.windows[i] = sees_window[i] ? window : 0;
  Json of_windows = json;
  of_windows["rope_theta"] = above_zero(json, "swa_rope_theta");
  c.window_rope = decode_rope(of_windows, c, c.window_heads.head_dim);
}

Config decode_mimo_v2(const Json& given) {
  refuse_unknown_layouts(given);
  const Json json = as_others(given);
  Config c = decode_silu(json);
  decode_mimo_windows(json, c);
  decode_biased_routing(json, c);
  c.has_experts = decode_marks(given, "moe_layer_freq", c.layers);
  c.value_scale = above_zero(json, "attention_value_scale", 1);
  c.has_sinks = flag(json, "add_full_attention_sink_bias", false);
  c.has_window_sinks = flag(json, "add_swa_attention_sink_bias", false);
  return c;
}

}  // namespace

Arch mimo_v2_flash() { return decoder<MimoV2Layer>("mimo_v2_flash", decode_as<decode_mimo_v2>); }

}  // namespace tandem::model::arch
