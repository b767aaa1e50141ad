// The layer of qwen3_next and qwen3_5.
#pragma once

#include <variant>

#include "model/arch.h"
#include "model/arch/moe_layer.h"
#include "model/blocks/attention.h"
#include "model/blocks/linear_attention.h"
#include "model/config_fields.h"

namespace tandem::model::arch {

/// Attention by the gated delta rule, or in some layers gated attention with a partial rope and an
/// RMS norm of each q and k head; then an MLP, or experts with a gated one that every token takes.
struct DeltaLayer {
  tensor::RmsNorm input_norm;
  std::variant<Attention, LinearAttention> mixer;
  tensor::RmsNorm post_norm;
  std::variant<SwiGlu, ExpertMlp> mlp;

  DeltaLayer(const Config& c, const Weights& w, uint32_t index)
      : input_norm(w / "input_layernorm", c.rms_eps, c.norm_offset),
        mixer(make_mixer(c, w, index)),
        post_norm(w / "post_attention_layernorm", c.rms_eps, c.norm_offset),
        mlp(MoeLayer::make_mlp(c,
                               w / "mlp",
                               index,
                               {.shared = "shared_expert", .shared_gate = "shared_expert_gate"})) {}

  static std::variant<Attention, LinearAttention> make_mixer(const Config& c,
                                                             const Weights& w,
                                                             uint32_t index) {
    if (c.is_recurrent[index]) return LinearAttention(w / "linear_attn", c);
    return Attention(w / "self_attn", c, {.qk_norm = c.rms_eps, .is_gated = true});
  }

  static uint32_t state_floats(const Config& c, const topology::Part& part) {
    return LinearAttention::state_floats(c, part);
  }

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const array normed = input_norm(x);
    const array mixed = std::visit([&](const auto& each) { return each(normed, kv, step); }, mixer);
    const auto [h, h_normed] = post_norm.of_sum(x, mixed);
    return h + std::visit([&x = h_normed](const auto& each) { return each(x); }, mlp);
  }
};

/// What the families' configs say alike.
Config decode_delta(const Json& json);

/// qwen3_5's and qwen3_5_moe's, which leave out what is usual.
Config decode_qwen3_5(const Json& json);

/// A family of such layers. Norms of checkpoints as they were released are stored without the 1
/// that is added to them: those are told by their convolutions, which have the taps on the last
/// axis there.
Arch delta_decoder(std::string_view model_type, Result<Config> (*decode)(const nlohmann::json&));

}  // namespace tandem::model::arch
