// GLM 4.5 to 4.7: the first layers dense, then experts chosen by a biased sigmoid, and shared ones.
#include "model/arch/moe_layer.h"

namespace tandem::model::arch {
namespace {

struct Glm4MoeLayer : MoeLayer {
  Glm4MoeLayer(const Config& c, const Weights& w, uint32_t index)
      : MoeLayer(
            c,
            w,
            index,
            {.attention = {.qk_norm = c.has_qk_norm ? std::optional(c.rms_eps) : std::nullopt},
             .experts = {.bias = "gate.e_score_correction_bias", .shared = "shared_experts"}}) {}
};

Config decode_glm4_moe(const Json& json) {
  Config c = decode_silu(json);
  c.has_qk_norm = flag(json, "use_qk_norm", false);
  decode_biased_routing(json, c);
  return c;
}

}  // namespace

Arch glm4_moe() { return decoder<Glm4MoeLayer>("glm4_moe", decode_as<decode_glm4_moe>); }

}  // namespace tandem::model::arch
