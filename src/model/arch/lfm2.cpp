// LFM2: gated short convolutions, and in some layers attention with an RMS norm of each q and k
// head; SwiGLU MLP.
#include <variant>

#include "model/arch.h"
#include "model/blocks/attention.h"
#include "model/blocks/mlp.h"
#include "model/blocks/short_conv.h"
#include "model/config_fields.h"

namespace tandem::model::arch {
namespace {

constexpr uint32_t kMostTaps = 64;  // a damaged file should not fill the memory

/// Which layers do not attend, of those that full_attn_idxs or layer_types list as attending.
std::vector<bool> decode_conv_layers(const Json& json, uint32_t layers) {
  std::vector<bool> out(layers, true);
  if (find(json, "full_attn_idxs") != nullptr) {
    clear_listed(json, "full_attn_idxs", out);
    return out;
  }
  const Json* types = find(json, "layer_types");
  if (types == nullptr)
    refuse(ErrorCode::kCorrupt, "full_attn_idxs and layer_types are missing: one should be there");
  if (!types->is_array() || types->size() != layers)
    refuse(ErrorCode::kCorrupt, "layer_types should have one entry for each layer");
  for (uint32_t i = 0; i < layers; ++i) {
    out[i] = (*types)[i] == "conv";
    if (!out[i] && (*types)[i] != "full_attention")
      refuse(ErrorCode::kUnsupported,
             fmt::format("layer type {} is not supported; conv and full_attention are",
                         (*types)[i].dump()));
  }
  return out;
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
  c.conv_taps = count(json, "conv_L_cache");
  if (c.conv_taps < 2 || c.conv_taps > kMostTaps)
    refuse(ErrorCode::kCorrupt,
           fmt::format("conv_L_cache should be from 2 to {}, is {}", kMostTaps, c.conv_taps));
  if (find(json, "block_dim") != nullptr && count(json, "block_dim") != c.hidden)
    refuse(ErrorCode::kUnsupported, fmt::format("block_dim is {}, and hidden_size {}: they differ",
                                                count(json, "block_dim"), c.hidden));
  c.is_recurrent = decode_conv_layers(json, c.layers);
  c.windows.assign(c.layers, 0);  // attention sees everything, whatever else the config says
  return c;
}

struct Lfm2Layer {
  tensor::RmsNorm operator_norm;
  std::variant<Attention, ShortConv> mixer;
  tensor::RmsNorm ffn_norm;
  SwiGlu feed_forward;

  Lfm2Layer(const Config& c, const Weights& w, uint32_t index)
      : operator_norm(w / "operator_norm", c.rms_eps),
        mixer(make_mixer(c, w, index)),
        ffn_norm(w / "ffn_norm", c.rms_eps),
        feed_forward(w / "feed_forward", c, {.gate = "w1", .up = "w3", .down = "w2"}) {}

  static std::variant<Attention, ShortConv> make_mixer(const Config& c,
                                                       const Weights& w,
                                                       uint32_t index) {
    if (c.is_recurrent[index]) return ShortConv(w / "conv", c);
    return Attention(
        w / "self_attn", c,
        {.qk_norm = c.rms_eps,
         .names = {.out = "out_proj", .q_norm = "q_layernorm", .k_norm = "k_layernorm"}});
  }

  static uint32_t state_floats(const Config& c, const topology::Part& part) {
    return ShortConv::state_floats(c, part);
  }

  array operator()(const array& x, kv::Layer* kv, const Step& step) const {
    const array normed = operator_norm(x);
    const array mixed = std::visit([&](const auto& each) { return each(normed, kv, step); }, mixer);
    const auto [h, h_normed] = ffn_norm.of_sum(x, mixed);
    return h + feed_forward(h_normed);
  }
};

}  // namespace

Arch lfm2() {
  Arch out = decoder<Lfm2Layer>("lfm2", decode_as<decode_lfm2>);
  out.final_norm = "embedding_norm";
  return out;
}

}  // namespace tandem::model::arch
