// LongCat-Flash (arXiv 2509.01322): a layer attends and has an MLP twice; experts take what the
// first MLP takes, and what they give joins behind the second. Some that are chosen are no experts:
// they give back what they take.
#include <cmath>

#include "model/arch/latent_layer.h"

namespace tandem::model::arch {
namespace {

/// Latent attention and an MLP, an RMS norm before each.
struct LongcatHalf {
  tensor::RmsNorm input_norm;
  LatentAttention attention;
  tensor::RmsNorm post_norm;
  SwiGlu mlp;

  LongcatHalf(const Config& c, const Weights& w, uint32_t half)
      : input_norm(w / "input_layernorm" / half, c.rms_eps),
        attention(w / "self_attn" / half, c, {.index = half}),
        post_norm(w / "post_attention_layernorm" / half, c.rms_eps),
        mlp(w / "mlps" / half, c) {}

  /// x after attention, and its norm.
  tensor::RmsNorm::Sum attended(const array& x, kv::Layer* kv, const Step& step) const {
    return post_norm.of_sum(x, attention(input_norm(x), kv, step));
  }
};

/// Both halves are one layer of a split, since the experts' part crosses from the first to the
/// second; it is summed over ranks with the second MLP's.
struct LongcatFlashLayer {
  tensor::Context context;
  LongcatHalf first, second;
  ExpertMlp experts;

  LongcatFlashLayer(const Config& c, const Weights& w, uint32_t)
      : context(w.context()),
        first(c, w, 0),
        second(c, w, 1),
        experts(w / "mlp",
                c,
                {.router = "router.classifier", .bias = "router.e_score_correction_bias"}) {}

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const auto [h, normed] = first.attended(x, kv, step);
    const array shortcut = experts.part(normed);
    const auto [last, last_normed] = second.attended(h + first.mlp(normed), kv, step);
    return last + tensor::all_sum(context, second.mlp.part(last_normed) + shortcut);
  }
};

/// Queries, and the vector that keys and values are made of, are as long as if their ranks were the
/// model's width: their scale is that of scores, and of the norm that makes the vector.
void decode_latent_scales(const Json& json, Config& c) {
  if (flag(json, "mla_scale_q_lora", true)) {
    if (c.latent.query_rank == 0) refuse(ErrorCode::kCorrupt, "q_lora_rank is missing");
    c.attention_scale *= std::sqrt(static_cast<double>(c.hidden) / c.latent.query_rank);
  }
  if (flag(json, "mla_scale_kv_lora", true))
    c.latent.scale = std::sqrt(static_cast<double>(c.hidden) / c.latent.rank);
}

void decode_longcat_experts(const Json& json, Config& c) {
  require_text(json, "zero_expert_type", "identity");
  c.experts = count(json, "n_routed_experts");
  if (real(json, "zero_expert_num", 0) != 0) c.identity_experts = count(json, "zero_expert_num");
  c.experts_of_token = count(json, "moe_topk");
  c.expert_mlp = count(json, "expert_ffn_hidden_size");
  c.routing = {.renormalizes = flag(json, "norm_topk_prob", false),
               .scale = static_cast<float>(above_zero(json, "routed_scaling_factor"))};
  c.has_experts.assign(c.layers, true);
  if (c.experts_of_token > c.experts + c.identity_experts)
    refuse(ErrorCode::kCorrupt, fmt::format("moe_topk is {} of {} experts and {} identities",
                                            c.experts_of_token, c.experts, c.identity_experts));
}

Config decode_longcat_flash(const Json& json) {
  require_text(json, "attention_method", "MLA");
  Config c = decode_latent(json);
  c.mlp = count(json, "ffn_hidden_size");  // which no experts stand in for
  c.attentions = 2;
  c.latent.eps = c.rms_eps;
  decode_latent_scales(json, c);
  decode_longcat_experts(json, c);
  return c;
}

}  // namespace

Arch longcat_flash() {
  return decoder<LongcatFlashLayer>("longcat_flash", decode_as<decode_longcat_flash>);
}

}  // namespace tandem::model::arch
