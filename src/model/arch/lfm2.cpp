// LFM2: gated short convolutions, and in some layers attention with an RMS norm of each q and k
// head; SwiGLU MLP, or experts by a biased sigmoid after the first layers.
#include <variant>

#include "model/arch.h"
#include "model/blocks/attention.h"
#include "model/blocks/experts.h"
#include "model/blocks/mlp.h"
#include "model/blocks/short_conv.h"
#include "model/config_fields.h"

namespace tandem::model::arch {
namespace {

/// Which layers do not attend, of those that full_attn_idxs or layer_types list as attending.
std::vector<bool> decode_conv_layers(const Json& json, uint32_t layers) {
  std::vector<bool> out(layers, true);
  if (find(json, "full_attn_idxs") != nullptr) {
    clear_listed(json, "full_attn_idxs", out);
    return out;
  }
  if (find(json, "layer_types") == nullptr)
    refuse(ErrorCode::kCorrupt, "full_attn_idxs and layer_types are missing: one should be there");
  return decode_state_layers(json, "conv", layers);
}

/// lfm2's fields under llama's names, without those that mean something else there.
Json as_llama(const Json& json) {
  Json out = json;
  out["rms_norm_eps"] = above_zero(json, "norm_eps");
  if (find(json, "rope_theta") == nullptr) out["rope_theta"] = 1e6;
  if (find(json, "tie_word_embeddings") == nullptr)
    out["tie_word_embeddings"] = flag(json, "tie_embedding", true);
  out.erase("layer_types");
  return out;
}

Config decode_lfm2(const Json& json) {
  Config c = decode_silu(as_llama(json));
  c.conv_taps = decode_taps(json, "conv_L_cache");
  if (find(json, "block_dim") != nullptr && count(json, "block_dim") != c.hidden)
    refuse(ErrorCode::kUnsupported, fmt::format("block_dim is {}, and hidden_size {}: they differ",
                                                count(json, "block_dim"), c.hidden));
  c.is_recurrent = decode_conv_layers(json, c.layers);
  c.windows.assign(c.layers, 0);  // attention sees everything, whatever else the config says
  return c;
}

Config decode_lfm2_moe(const Json& json) {
  Config c = decode_lfm2(json);
  c.has_expert_bias = flag(json, "use_expert_bias", true);
  c.experts = count(json, "num_experts");
  c.experts_of_token = count(json, "num_experts_per_tok");
  c.expert_mlp = count(json, "moe_intermediate_size");
  c.routing = {.score = tensor::ExpertScore::kSigmoid,
               .renormalizes = flag(json, "norm_topk_prob", true),
               .scale = static_cast<float>(above_zero(json, "routed_scaling_factor", 1))};
  const double dense = real(json, "num_dense_layers", 0);
  for (uint32_t i = 0; i < c.layers; ++i) c.has_experts.push_back(i >= dense);
  check_experts_of_token(c);
  return c;
}

struct Lfm2Layer {
  tensor::RmsNorm operator_norm;
  std::variant<Attention, ShortConv> mixer;
  tensor::RmsNorm ffn_norm;
  std::variant<SwiGlu, ExpertMlp> feed_forward;

  Lfm2Layer(const Config& c, const Weights& w, uint32_t index)
      : operator_norm(w / "operator_norm", c.rms_eps),
        mixer(make_mixer(c, w, index)),
        ffn_norm(w / "ffn_norm", c.rms_eps),
        feed_forward(make_feed_forward(c, w / "feed_forward", index)) {}

  static std::variant<Attention, ShortConv> make_mixer(const Config& c,
                                                       const Weights& w,
                                                       uint32_t index) {
    if (c.is_recurrent[index]) return ShortConv(w / "conv", c);
    return Attention(
        w / "self_attn", c,
        {.qk_norm = c.rms_eps,
         .names = {.out = "out_proj", .q_norm = "q_layernorm", .k_norm = "k_layernorm"}});
  }

  /// mlx-lm renames w1, w3 and w2 where there are experts.
  static std::variant<SwiGlu, ExpertMlp> make_feed_forward(const Config& c,
                                                           const Weights& w,
                                                           uint32_t index) {
    if (!c.has_experts.empty() && c.has_experts[index])
      return ExpertMlp(w, c, {.bias = c.has_expert_bias ? "expert_bias" : nullptr});
    if ((w / "gate_proj").has("weight")) return SwiGlu(w, c);
    return SwiGlu(w, c, {.gate = "w1", .up = "w3", .down = "w2"});
  }

  static uint32_t state_floats(const Config& c, const topology::Part& part) {
    return ShortConv::state_floats(c, part);
  }

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const array normed = operator_norm(x);
    const array mixed = std::visit([&](const auto& each) { return each(normed, kv, step); }, mixer);
    const auto [h, h_normed] = ffn_norm.of_sum(x, mixed);
    return h + std::visit([&x = h_normed](const auto& each) { return each(x); }, feed_forward);
  }
};

}  // namespace

static Arch lfm2_of(const char* model_type, Result<Config> (*decode)(const Json&)) {
  Arch out = decoder<Lfm2Layer>(model_type, decode);
  out.final_norm = "embedding_norm";
  return out;
}

Arch lfm2() { return lfm2_of("lfm2", decode_as<decode_lfm2>); }

Arch lfm2_moe() { return lfm2_of("lfm2_moe", decode_as<decode_lfm2_moe>); }

}  // namespace tandem::model::arch
