// The layer of families that are llama's but for experts in place of some MLPs.
#pragma once

#include <variant>

#include "model/arch.h"
#include "model/blocks/attention.h"
#include "model/blocks/experts.h"
#include "model/blocks/mlp.h"
#include "model/config_fields.h"

namespace tandem::model::arch {

struct MoeLayerOptions {
  AttentionOptions attention = {};
  ExpertMlpOptions experts = {};
  const char* block = "mlp";
};

/// Grouped-query attention, then an MLP or experts, an RMS norm before each.
struct MoeLayer {
  tensor::RmsNorm input_norm;
  Attention attention;
  tensor::RmsNorm post_norm;
  std::variant<SwiGlu, ExpertMlp> mlp;

  MoeLayer(const Config& c, const Weights& w, uint32_t index, MoeLayerOptions options)
      : input_norm(w / "input_layernorm", c.rms_eps, c.norm_offset),
        attention(w / "self_attn", c, options.attention.of_layer(c, index)),
        post_norm(w / "post_attention_layernorm", c.rms_eps, c.norm_offset),
        mlp(make_mlp(c, w / options.block, index, options.experts)) {}

  static std::variant<SwiGlu, ExpertMlp> make_mlp(const Config& c,
                                                  const Weights& w,
                                                  uint32_t index,
                                                  const ExpertMlpOptions& options) {
    if (c.has_experts[index]) return ExpertMlp(w, c, options);
    return SwiGlu(w, c);
  }

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const auto [h, normed] = post_norm.of_sum(x, attention(input_norm(x), kv, step));
    return h + std::visit([&x = normed](const auto& each) { return each(x); }, mlp);
  }
};

}  // namespace tandem::model::arch
