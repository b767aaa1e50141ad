// Gemma 3 without its vision tower: most layers see a window and have a rope of their own.
#include <bit>

#include "model/arch/gemma_layer.h"

namespace tandem::model::arch {
namespace {

struct Gemma3Layer : GemmaLayer {
  Gemma3Layer(const Config& c, const Weights& w, uint32_t index)
      : GemmaLayer(c, w, index, c.rms_eps) {}
};

/// The nearest number with 8 bits: the reference keeps the scale of embeddings in bfloat16.
double as_bfloat16(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const uint32_t rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
  return static_cast<double>(std::bit_cast<float>(rounded & 0xFFFF0000U));
}

/// Newer configs say each kind's rope in rope_parameters; older ones have rope_local_base_freq
/// beside the fields of layers that see everything.
Json split_ropes(Json json, double& window_base) {
  window_base = above_zero(json, "rope_local_base_freq", 10'000);
  const Json* ropes = find(json, "rope_parameters");
  if (ropes == nullptr || !ropes->is_object() || find(*ropes, "full_attention") == nullptr)
    return json;
  if (const Json* window = find(*ropes, "sliding_attention"))
    window_base = above_zero(*window, "rope_theta", window_base);
  const Json full = ropes->at("full_attention");
  json["rope_parameters"] = full;
  return json;
}

Config decode_gemma3(const Json& given) {
  double window_base = 0;
  const Json json = split_ropes(with_defaults(given, {{"query_pre_attn_scalar", 256},
                                                      {"rms_norm_eps", 1e-6},
                                                      {"rope_theta", 1e6},
                                                      {"head_dim", 256},
                                                      {"num_attention_heads", 8},
                                                      {"num_key_value_heads", 4},
                                                      {"vocab_size", 262'208},
                                                      {"max_position_embeddings", 131'072},
                                                      {"sliding_window", 512},
                                                      {"sliding_window_pattern", 6}}),
                                window_base);
  Config c = decode_gemma(json);
  c.embed_scale = as_bfloat16(c.embed_scale);
  c.window_rope = plain_rope(c.head_dim, window_base);
  if (find(json, "layer_types") == nullptr) decode_window_pattern(json, c);
  return c;
}

}  // namespace

Arch gemma3_text() { return decoder<Gemma3Layer>("gemma3_text", decode_as<decode_gemma3>); }

}  // namespace tandem::model::arch
