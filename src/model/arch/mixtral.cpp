// Mixtral: experts in every layer; a token weighs those that it takes among themselves.
#include "model/arch/moe_layer.h"

namespace tandem::model::arch {
namespace {

struct MixtralLayer : MoeLayer {
  MixtralLayer(const Config& c, const Weights& w, uint32_t index)
      : MoeLayer(c, w, index, {.block = "block_sparse_moe"}) {}
};

/// A softmax over the chosen logits is the renormalized softmax over all.
Config decode_mixtral(const Json& json) {
  Config c = decode_silu(json);
  decode_local_experts(json, c);
  c.routing.renormalizes = true;
  return c;
}

}  // namespace

Arch mixtral() { return decoder<MixtralLayer>("mixtral", decode_as<decode_mixtral>); }

}  // namespace tandem::model::arch
