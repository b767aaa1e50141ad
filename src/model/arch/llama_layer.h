// The layer of llama and its many relatives.
#pragma once

#include "model/arch.h"
#include "model/blocks/attention.h"
#include "model/blocks/mlp.h"

namespace tandem::model::arch {

/// Grouped-query attention, SwiGLU MLP, an RMS norm before each; biases where the checkpoint has
/// them. Windows and ropes are the config's, whatever `options` says of them.
struct LlamaLayer {
  tensor::RmsNorm input_norm;
  Attention attention;
  tensor::RmsNorm post_norm;
  SwiGlu mlp;

  LlamaLayer(const Config& c, const Weights& w, uint32_t index, AttentionOptions options = {})
      : input_norm(w / "input_layernorm", c.rms_eps),
        attention(w / "self_attn", c, options.of_layer(c, index)),
        post_norm(w / "post_attention_layernorm", c.rms_eps),
        mlp(w / "mlp", c) {}

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const auto [h, normed] = post_norm.of_sum(x, attention(input_norm(x), kv, step));
    return h + mlp(normed);
  }
};

}  // namespace tandem::model::arch
