// GLM 5: DeepSeek V3.2 whose indexer rotates neighbouring pairs.
#include "model/arch/latent_layer.h"

namespace tandem::model::arch {
namespace {

Config decode_glm_moe_dsa(const Json& json) {
  return decode_deepseek_v32(with_defaults(json, {{"indexer_rope_interleave", true}}));
}

}  // namespace

Arch glm_moe_dsa() { return decoder<LatentLayer>("glm_moe_dsa", decode_as<decode_glm_moe_dsa>); }

}  // namespace tandem::model::arch
