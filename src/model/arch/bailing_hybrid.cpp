// Ling and Ring 2.5: in most layers lightning attention, in the others latent attention; experts by
// a biased sigmoid in groups, shared experts.
#include <cmath>

#include "model/arch/moe_layer.h"
#include "model/blocks/latent_attention.h"
#include "model/blocks/lightning_attention.h"

namespace tandem::model::arch {
namespace {

struct BailingLayer {
  tensor::RmsNorm input_norm;
  std::variant<LatentAttention, LightningAttention> attention;
  tensor::RmsNorm post_norm;
  std::variant<SwiGlu, ExpertMlp> mlp;

  BailingLayer(const Config& c, const Weights& w, uint32_t index)
      : input_norm(w / "input_layernorm", c.rms_eps),
        attention(make_attention(c, w / "attention", index)),
        post_norm(w / "post_attention_layernorm", c.rms_eps),
        mlp(make_mlp(c, w / "mlp", index)) {}

  static std::variant<LatentAttention, LightningAttention> make_attention(const Config& c,
                                                                          const Weights& w,
                                                                          uint32_t index) {
    if (c.is_recurrent[index]) return LightningAttention(w, c, index);
    return LatentAttention(w, c, {.out = "dense"});
  }

  /// The router is at gate as it is published, which mlx-lm renames.
  static std::variant<SwiGlu, ExpertMlp> make_mlp(const Config& c,
                                                  const Weights& w,
                                                  uint32_t index) {
    const bool is_published = (w / "gate").has("weight");
    return MoeLayer::make_mlp(c, w, index,
                              {.router = is_published ? "gate" : "gate.gate_proj",
                               .bias = c.has_expert_bias ? "gate.expert_bias" : nullptr,
                               .shared = "shared_experts"});
  }

  static uint32_t state_floats(const Config& c, const topology::Part& part) {
    return LightningAttention::state_floats(c, part);
  }

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const array normed = input_norm(x);
    const array mixed =
        std::visit([&](const auto& each) { return each(normed, kv, step); }, attention);
    const auto [h, h_normed] = post_norm.of_sum(x, mixed);
    return h + std::visit([&x = h_normed](const auto& each) { return each(x); }, mlp);
  }
};

/// The last layer of each layer_group_size has latent attention, and those that are left over.
std::vector<bool> decode_lightning_layers(const Json& json, uint32_t layers) {
  const uint32_t group = count(json, "layer_group_size");
  std::vector<bool> out(layers);
  for (uint32_t i = 0; i < layers / group * group; ++i) out[i] = (i + 1) % group != 0;
  return out;
}

void decode_lightning(const Json& json, Config& c) {
  const uint32_t dim =
      find(json, "head_dim") == nullptr ? c.hidden / c.heads : count(json, "head_dim");
  const float scale = 1 / std::sqrt(static_cast<float>(dim));
  c.delta = {.key_heads = c.heads,
             .value_heads = c.heads,
             .key_dim = dim,
             .value_dim = dim,
             .form = tensor::DeltaForm::kSsd,
             .least_dt = scale,
             .most_dt = scale};
  check_state(c.delta, "num_attention_heads", "head_dim");
  c.is_recurrent = decode_lightning_layers(json, c.layers);
  c.has_qk_norm = flag(json, "use_qk_norm", true);
  c.read_norm_groups = count(json, "group_norm_size");
  if (c.delta.values() % c.read_norm_groups != 0)
    refuse(ErrorCode::kCorrupt,
           fmt::format("group_norm_size {} does not divide the {} columns of all heads",
                       c.read_norm_groups, c.delta.values()));
  Json rope = with_defaults(json, {{"partial_rotary_factor", 0.5}});
  rope.erase("rope_traditional");
  c.state_rope = decode_rope(rope, c, dim);
  if (static_cast<uint32_t>(real(rope, "partial_rotary_factor") * dim) % 2 != 0)
    refuse(ErrorCode::kCorrupt,
           fmt::format("partial_rotary_factor {} turns an odd part of head_dim {}",
                       rope["partial_rotary_factor"].dump(), dim));
}

/// Under the names that decode_routed_experts() reads.
Json as_routed(Json json) {
  json["n_routed_experts"] = count(json, "num_experts");
  if (real(json, "num_shared_experts", 0) != 0)
    json["n_shared_experts"] = count(json, "num_shared_experts");
  return json;
}

void decode_biased_experts(const Json& json, Config& c) {
  if (find(json, "num_experts") == nullptr) {
    c.has_experts.assign(c.layers, false);
    return;
  }
  decode_routed_experts(as_routed(json), c);
  if (flag(json, "use_bias", false))
    refuse(ErrorCode::kUnsupported, "use_bias beside experts is not supported");
  if (c.shared_mlp != 0 && real(json, "moe_shared_expert_intermediate_size", 0) != 0)
    c.shared_mlp = count(json, "moe_shared_expert_intermediate_size");
  const std::string score = text(json, "score_function", "sigmoid");
  if (score != "sigmoid" && score != "softmax")
    refuse(ErrorCode::kUnsupported,
           fmt::format("score_function {} is not supported; sigmoid and softmax are", score));
  if (score == "sigmoid") c.routing.score = tensor::ExpertScore::kSigmoid;
  c.routing.renormalizes = c.experts_of_token > 1 && flag(json, "norm_topk_prob", true);
  c.routing.leaves_groups_out = true;
  c.has_expert_bias = flag(json, "moe_router_enable_expert_bias", true);
}

/// Ling 3 goes by the same model_type and is another family.
void refuse_version_3(const Json& json) {
  const Json* names = find(json, "architectures");
  if (names == nullptr || names->dump().find("BailingMoeV3") == std::string::npos) return;
  refuse(ErrorCode::kUnsupported,
         "architectures names BailingMoeV3ForCausalLM (Ling 3), which is "
         "not supported; Ling and Ring 2.5 are");
}

Config decode_bailing_hybrid(const Json& json) {
  refuse_version_3(json);
  for (const char* key : {"norm_head", "norm_softmax", "linear_silu"})
    if (flag(json, key, false))
      refuse(ErrorCode::kUnsupported, fmt::format("{} is true, which is not supported", key));
  Config c = decode_latent(json);
  c.latent.eps = c.rms_eps;
  decode_lightning(json, c);
  decode_biased_experts(json, c);
  return c;
}

}  // namespace

Arch bailing_hybrid() {
  Arch out = decoder<BailingLayer>("bailing_hybrid", decode_as<decode_bailing_hybrid>);
  out.embedding = "word_embeddings";
  return out;
}

}  // namespace tandem::model::arch
