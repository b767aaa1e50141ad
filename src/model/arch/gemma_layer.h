// The layer of gemma 2 and 3.
#pragma once

#include <cmath>

#include "model/arch.h"
#include "model/blocks/attention.h"
#include "model/blocks/mlp.h"
#include "model/config_fields.h"

namespace tandem::model::arch {

/// An RMS norm before and after each of attention and MLP; norms of weights that lie around 0.
struct GemmaLayer {
  tensor::RmsNorm input_norm, after_attention, before_mlp, after_mlp;
  Attention attention;
  SwiGlu mlp;

  GemmaLayer(const Config& c, const Weights& w, uint32_t index, std::optional<double> qk_norm)
      : input_norm(w / "input_layernorm", c.rms_eps, c.norm_offset),
        after_attention(w / "post_attention_layernorm", c.rms_eps, c.norm_offset),
        before_mlp(w / "pre_feedforward_layernorm", c.rms_eps, c.norm_offset),
        after_mlp(w / "post_feedforward_layernorm", c.rms_eps, c.norm_offset),
        attention(w / "self_attn", c, {.window = c.windows[index], .qk_norm = qk_norm}),
        mlp(w / "mlp", c) {}

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const array attended = after_attention(attention(input_norm(x), kv, step));
    const auto [h, normed] = before_mlp.of_sum(x, attended);
    return h + after_mlp(mlp(normed));
  }
};

/// What both have in common, of a config with their defaults.
inline Config decode_gemma(const Json& json) {
  Config c = decode_base(json);
  c.norm_offset = 1;
  c.gate = tensor::Gate::kGeluTanh;
  c.embed_scale = std::sqrt(static_cast<double>(c.hidden));
  c.attention_scale = 1 / std::sqrt(above_zero(json, "query_pre_attn_scalar"));
  return c;
}

}  // namespace tandem::model::arch
