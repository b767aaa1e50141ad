// The layer of families with latent attention: an MLP or experts after it, an RMS norm before each.
#pragma once

#include "model/arch/moe_layer.h"
#include "model/blocks/latent_attention.h"

namespace tandem::model::arch {

struct LatentLayer {
  tensor::RmsNorm input_norm;
  LatentAttention attention;
  tensor::RmsNorm post_norm;
  std::variant<SwiGlu, ExpertMlp> mlp;

  /// Experts are chosen with a bias where the routing is by a sigmoid.
  LatentLayer(const Config& c, const Weights& w, uint32_t index)
      : input_norm(w / "input_layernorm", c.rms_eps),
        attention(w / "self_attn", c),
        post_norm(w / "post_attention_layernorm", c.rms_eps),
        mlp(MoeLayer::make_mlp(c,
                               w / "mlp",
                               index,
                               {.bias = c.routing.score == tensor::ExpertScore::kSigmoid
                                            ? "gate.e_score_correction_bias"
                                            : nullptr,
                                .shared = "shared_experts"})) {}

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const auto [h, normed] = post_norm.of_sum(x, attention(input_norm(x), kv, step));
    return h + std::visit([&x = normed](const auto& each) { return each(x); }, mlp);
  }
};

}  // namespace tandem::model::arch
