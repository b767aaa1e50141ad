// The layer of llama and its many relatives.
#pragma once

#include "model/arch.h"
#include "model/blocks/attention.h"
#include "model/blocks/mlp.h"

namespace tandem::model::arch {

/// Grouped-query attention, SwiGLU MLP, an RMS norm before each; biases where the checkpoint has
/// them.
struct LlamaLayer {
  tensor::RmsNorm input_norm;
  Attention attention;
  tensor::RmsNorm post_norm;
  SwiGlu mlp;

  LlamaLayer(const Config& c, const Weights& w, uint32_t index)
      : input_norm(w / "input_layernorm", c.rms_eps),
        attention(
            w / "self_attn",
            c,
            {.window = c.windows[index], .has_rope = c.has_rope.empty() || c.has_rope[index]}),
        post_norm(w / "post_attention_layernorm", c.rms_eps),
        mlp(w / "mlp", c) {}

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const auto [h, normed] = post_norm.of_sum(x, attention(input_norm(x), kv, step));
    return h + mlp(normed);
  }
};

}  // namespace tandem::model::arch
