// Kimi Linear: in most layers the gated delta rule with a decay for each key channel, in the others
// latent attention without a rope; experts by a biased sigmoid in groups, shared experts.
#include <cmath>

#include "model/arch/moe_layer.h"
#include "model/blocks/channel_delta.h"
#include "model/blocks/latent_attention.h"

namespace tandem::model::arch {
namespace {

struct KimiLinearLayer {
  tensor::RmsNorm input_norm;
  std::variant<LatentAttention, ChannelDelta> attention;
  tensor::RmsNorm post_norm;
  std::variant<SwiGlu, ExpertMlp> mlp;

  KimiLinearLayer(const Config& c, const Weights& w, uint32_t index)
      : input_norm(w / "input_layernorm", c.rms_eps),
        attention(make_attention(c, w / "self_attn", index)),
        post_norm(w / "post_attention_layernorm", c.rms_eps),
        mlp(make_mlp(c, w, index)) {}

  static std::variant<LatentAttention, ChannelDelta> make_attention(const Config& c,
                                                                    const Weights& w,
                                                                    uint32_t index) {
    if (c.is_recurrent[index]) return ChannelDelta(w, c);
    return LatentAttention(w, c);
  }

  /// Experts lie in block_sparse_moe as they are published, which mlx-lm renames.
  static std::variant<SwiGlu, ExpertMlp> make_mlp(const Config& c,
                                                  const Weights& w,
                                                  uint32_t index) {
    const Weights published = w / "block_sparse_moe";
    const bool is_published = (published / "gate").has("weight");
    return MoeLayer::make_mlp(
        c, is_published ? published : w / "mlp", index,
        {.bias = is_published ? "gate.e_score_correction_bias" : "e_score_correction_bias",
         .shared = "shared_experts"});
  }

  static uint32_t state_floats(const Config& c, const topology::Part& part) {
    return ChannelDelta::state_floats(c, part);
  }

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const array normed = input_norm(x);
    const array mixed =
        std::visit([&](const auto& each) { return each(normed, kv, step); }, attention);
    const auto [h, h_normed] = post_norm.of_sum(x, mixed);
    return h + std::visit([&x = h_normed](const auto& each) { return each(x); }, mlp);
  }
};

/// Layers that a field lists, which counts them from 1.
std::vector<bool> decode_counted_layers(const Json& json, const char* key, uint32_t layers) {
  const Json* listed = find(json, key);
  if (listed == nullptr || !listed->is_array())
    refuse(ErrorCode::kCorrupt, fmt::format("linear_attn_config.{} should be a list", key));
  std::vector<bool> out(layers);
  for (const Json& layer : *listed) {
    if (!layer.is_number_integer() || layer < 1 || layer > layers)
      refuse(ErrorCode::kCorrupt, fmt::format("linear_attn_config.{} lists {}; layers are 1 to {}",
                                              key, layer.dump(), layers));
    out[layer.get<size_t>() - 1] = true;
  }
  return out;
}

void decode_linear_attention(const Json& json, Config& c) {
  const Json* own = find(json, "linear_attn_config");
  if (own == nullptr || !own->is_object())
    refuse(ErrorCode::kCorrupt, "linear_attn_config should be an object");
  c.is_recurrent = decode_counted_layers(*own, "kda_layers", c.layers);
  if (find(*own, "full_attn_layers") != nullptr) {
    std::vector<bool> others = decode_counted_layers(*own, "full_attn_layers", c.layers);
    others.flip();
    if (others != c.is_recurrent)
      refuse(ErrorCode::kCorrupt,
             "each layer should be in one of kda_layers and full_attn_layers of "
             "linear_attn_config");
  }
  const uint32_t heads = count(*own, "num_heads"), dim = count(*own, "head_dim");
  c.delta = {.key_heads = heads,
             .value_heads = heads,
             .key_dim = dim,
             .value_dim = dim,
             .form = tensor::DeltaForm::kChannelDelta};
  check_state(c.delta, "num_heads", "head_dim");
  c.conv_taps =
      decode_taps(with_defaults(*own, {{"short_conv_kernel_size", 4}}), "short_conv_kernel_size");
}

/// Under the names that decode_routed_experts() reads.
Json with_usual_experts(Json json) {
  json["n_routed_experts"] = count(json, "num_experts");
  json["num_experts_per_tok"] =
      count(with_defaults(json, {{"num_experts_per_token", 1}}), "num_experts_per_token");
  if (find(json, "num_expert_group") != nullptr) json["n_group"] = count(json, "num_expert_group");
  if (real(json, "num_shared_experts", 0) != 0)
    json["n_shared_experts"] = count(json, "num_shared_experts");
  return json;
}

void decode_kimi_experts(const Json& json, Config& c) {
  if (real(json, "num_experts", 0) == 0) {
    c.has_experts.assign(c.layers, false);
    return;
  }
  decode_routed_experts(with_usual_experts(json), c);
  const std::string score = text(json, "moe_router_activation_func", "sigmoid");
  if (score != "sigmoid" && score != "softmax")
    refuse(ErrorCode::kUnsupported,
           fmt::format("moe_router_activation_func {} is not supported; sigmoid and softmax are",
                       score));
  if (score == "sigmoid") c.routing.score = tensor::ExpertScore::kSigmoid;
  c.routing.renormalizes = c.experts_of_token > 1 && flag(json, "moe_renormalize", true);
  if (c.routing.groups > 1 && !flag(json, "use_grouped_topk", true))
    refuse(ErrorCode::kUnsupported,
           fmt::format("use_grouped_topk is false beside num_expert_group {}: only a choice by "
                       "groups is supported there",
                       c.routing.groups));
}

/// Queries and keys keep their part for positions, which nothing turns.
Config decode_plain_latent(Json json) {
  if (!flag(json, "mla_use_nope", true))
    refuse(ErrorCode::kUnsupported,
           "mla_use_nope is false; only attention without a rope is "
           "supported");
  json.erase("rope_scaling");
  json.erase("rope_parameters");
  if (find(json, "head_dim") != nullptr)
    json = with_defaults(
        json, {{"qk_nope_head_dim", json["head_dim"]}, {"v_head_dim", json["head_dim"]}});
  Config c = decode_latent(json);
  c.rope = nullptr;
  c.latent.eps = c.rms_eps;
  return c;
}

Config decode_kimi_linear(const Json& json) {
  Config c = decode_plain_latent(json);
  decode_linear_attention(json, c);
  decode_kimi_experts(json, c);
  return c;
}

}  // namespace

Arch kimi_linear() {
  return decoder<KimiLinearLayer>("kimi_linear", decode_as<decode_kimi_linear>);
}

}  // namespace tandem::model::arch
