// GLM 4.7 Flash: DeepSeek V3 whose latent norms have the eps of the others.
#include "model/arch/latent_layer.h"

namespace tandem::model::arch {
namespace {

Config decode_glm4_moe_lite(const Json& json) {
  Config c = decode_deepseek_v3(json);
  c.latent.eps = c.rms_eps;
  return c;
}

}  // namespace

Arch glm4_moe_lite() {
  return decoder<LatentLayer>("glm4_moe_lite", decode_as<decode_glm4_moe_lite>);
}

}  // namespace tandem::model::arch
