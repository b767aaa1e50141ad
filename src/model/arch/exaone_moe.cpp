// K-EXAONE: three layers in four see a window and have a rope, the others see all and have none;
// experts by a biased sigmoid in groups, shared ones.
#include <algorithm>

#include "model/arch/moe_layer.h"

namespace tandem::model::arch {
namespace {

struct ExaoneMoeLayer : MoeLayer {
  ExaoneMoeLayer(const Config& c, const Weights& w, uint32_t index)
      : MoeLayer(
            c,
            w,
            index,
            {.attention = {.qk_norm = c.rms_eps},
             .experts = {.bias = "gate.e_score_correction_bias", .shared = "shared_experts"}}) {}
};

/// The counts of experts under the names that decode_biased_routing() reads.
Json as_deepseek(const Json& json) {
  Json out = json;
  out["n_routed_experts"] = count(json, "num_experts");
  if (find(json, "num_shared_experts") != nullptr)
    out["n_shared_experts"] = json["num_shared_experts"];
  return with_defaults(out, {{"routed_scaling_factor", 2.5}});
}

/// is_moe_layer where it is there; otherwise the first layers are dense.
void decode_expert_layers(const Json& json, Config& c) {
  const Json* listed = find(json, "is_moe_layer");
  if (listed == nullptr) return;
  const bool is_flags = listed->is_array() && listed->size() == c.layers &&
                        std::ranges::all_of(*listed, &Json::is_boolean);
  if (!is_flags)
    refuse(ErrorCode::kCorrupt, "is_moe_layer should say true or false for each layer");
  c.has_experts.clear();
  for (const Json& each : *listed) c.has_experts.push_back(each.get<bool>());
}

Config decode_exaone_moe(const Json& json) {
  Config c = decode_silu(json);
  decode_biased_routing(as_deepseek(json), c);
  decode_expert_layers(json, c);
  if (std::ranges::any_of(c.windows, [](uint32_t window) { return window != 0; }))
    for (const uint32_t window : c.windows) c.has_rope.push_back(window != 0);
  return c;
}

}  // namespace

Arch exaone_moe() { return decoder<ExaoneMoeLayer>("exaone_moe", decode_as<decode_exaone_moe>); }

}  // namespace tandem::model::arch
