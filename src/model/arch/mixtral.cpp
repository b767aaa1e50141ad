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
  c.experts = count(json, "num_local_experts");
  c.experts_of_token = count(json, "num_experts_per_tok");
  c.expert_mlp = c.mlp;
  c.routing.renormalizes = true;
  c.has_experts.assign(c.layers, true);
  check_experts_of_token(c);
  return c;
}

}  // namespace

Arch mixtral() { return decoder<MixtralLayer>("mixtral", decode_as<decode_mixtral>); }

}  // namespace tandem::model::arch
