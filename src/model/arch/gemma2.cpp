// Gemma 2: caps on scores and logits; every other layer sees a window.
#include "model/arch/gemma_layer.h"

namespace tandem::model::arch {
namespace {

struct Gemma2Layer : GemmaLayer {
  Gemma2Layer(const Config& c, const Weights& w, uint32_t index)
      : GemmaLayer(c, w, index, std::nullopt) {}
};

/// The first layer sees a window. (mlx-lm lets every layer see all, which is the same as long as
/// the window is not full.)
Config decode_gemma2(const Json& json) {
  Config c =
      decode_gemma(with_defaults(json, {{"query_pre_attn_scalar", 144}, {"rms_norm_eps", 1e-6}}));
  c.attention_softcap = above_zero(json, "attn_logit_softcapping", 50);
  c.logit_softcap = above_zero(json, "final_logit_softcapping", 30);
  if (find(json, "layer_types") != nullptr || find(json, "sliding_window") == nullptr) return c;
  for (uint32_t i = 0; i < c.layers; i += 2) c.windows[i] = count(json, "sliding_window");
  return c;
}

}  // namespace

Arch gemma2() { return decoder<Gemma2Layer>("gemma2", decode_as<decode_gemma2>); }

}  // namespace tandem::model::arch
