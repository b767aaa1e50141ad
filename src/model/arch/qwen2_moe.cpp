// Qwen 1.5 and 2 with experts, beside which every token takes one more, weighed by a gate.
#include "model/arch/moe_layer.h"

namespace tandem::model::arch {
namespace {

struct Qwen2MoeLayer : MoeLayer {
  Qwen2MoeLayer(const Config& c, const Weights& w, uint32_t index)
      : MoeLayer(c,
                 w,
                 index,
                 {.experts = {.shared = "shared_expert", .shared_gate = "shared_expert_gate"}}) {}
};

Config decode_qwen2_moe(const Json& json) {
  Config c = decode_with_experts(json);
  c.shared_mlp = count(json, "shared_expert_intermediate_size");
  return c;
}

}  // namespace

Arch qwen2_moe() { return decoder<Qwen2MoeLayer>("qwen2_moe", decode_as<decode_qwen2_moe>); }

}  // namespace tandem::model::arch
