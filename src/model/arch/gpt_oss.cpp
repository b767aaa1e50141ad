// gpt-oss: experts with biases in every layer, chosen by a router with a bias; attention with
// sinks, every other layer a window.
#include "format/model_sizes.h"
#include "model/arch/moe_layer.h"

namespace tandem::model::arch {
namespace {

struct GptOssLayer : MoeLayer {
  GptOssLayer(const Config& c, const Weights& w, uint32_t index)
      : MoeLayer(c, w, index, {.attention = {.has_sinks = true}, .experts = {.router = "router"}}) {
  }
};

/// A config without layer_types means a window in the first layer and in every other one after it.
Json with_layer_types(const Json& json) {
  const uint32_t layers = format::read_sizes(json) ? count(json, "num_hidden_layers") : 0;
  Json types = Json::array();
  for (uint32_t i = 0; i < layers; ++i)
    types.push_back(i % 2 == 0 ? "sliding_attention" : "full_attention");
  return with_defaults(json, {{"layer_types", types},
                              {"sliding_window", 128},
                              {"rms_norm_eps", 1e-5},
                              {"rope_theta", 150000},
                              {"head_dim", 64}});
}

/// A softmax over the chosen logits is the renormalized softmax over all.
Config decode_gpt_oss(const Json& json) {
  Config c = decode_silu(with_layer_types(json));
  if (real(json, "swiglu_limit", 7) != 7)
    refuse(ErrorCode::kUnsupported,
           fmt::format("swiglu_limit {} is not supported; 7 is", json.at("swiglu_limit").dump()));
  c.gate = tensor::Gate::kClamped;
  decode_local_experts(json, c);
  c.routing.renormalizes = true;
  return c;
}

}  // namespace

Arch gpt_oss() { return decoder<GptOssLayer>("gpt_oss", decode_as<decode_gpt_oss>); }

}  // namespace tandem::model::arch
