// DeepSeek V2, V2.5, Coder V2 and their Lite models: experts by a softmax, in V2 in groups that
// count as much as their best expert.
#include "model/arch/latent_layer.h"

namespace tandem::model::arch {
namespace {

Config decode_deepseek_v2(const Json& json) {
  require_text(json, "scoring_func", "softmax");
  Config c = decode_latent(json);
  Json routed = json;
  const std::string method = text(json, "topk_method", "greedy");
  if (method == "greedy") {
    routed["n_group"] = routed["topk_group"] = 1;
  } else if (method != "group_limited_greedy") {
    refuse(ErrorCode::kUnsupported,
           fmt::format("topk_method {} is not supported; greedy and group_limited_greedy are",
                       method));
  }
  decode_routed_experts(routed, c);
  c.routing.weighs_groups_by_best = true;
  c.routing.renormalizes = c.experts_of_token > 1 && flag(json, "norm_topk_prob", false);
  if (c.routing.renormalizes) c.routing.scale = 1;  // the one or the other
  return c;
}

}  // namespace

Arch deepseek_v2() { return decoder<LatentLayer>("deepseek_v2", decode_as<decode_deepseek_v2>); }

}  // namespace tandem::model::arch
