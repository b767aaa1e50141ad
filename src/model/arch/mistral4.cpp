// Mistral 4: latent attention whose queries grow with their position, experts by a softmax in
// groups.
#include "model/arch/latent_layer.h"

namespace tandem::model::arch {
namespace {

Config decode_mistral4(const Json& json) {
  Config c = decode_latent(json);
  c.query_scale = decode_query_scale(json);
  decode_routed_experts(json, c);
  c.routing.renormalizes = flag(json, "norm_topk_prob", true);
  return c;
}

}  // namespace

Arch mistral4() { return decoder<LatentLayer>("mistral4", decode_as<decode_mistral4>); }

}  // namespace tandem::model::arch
