// Mamba 2: nothing but state spaces.
#include "model/arch/ssd_layer.h"

namespace tandem::model::arch {
namespace {

/// mamba2's fields under the names that others use.
Json as_usual(const Json& json) {
  Json out = json;
  out["rms_norm_eps"] = above_zero(json, "layer_norm_epsilon", 1e-5);
  if (find(json, "ssm_state_size") == nullptr) out["ssm_state_size"] = count(json, "state_size");
  return out;
}

Config decode_mamba2(const Json& given) {
  const Json json = as_usual(given);
  Config c = decode_silu(json);
  decode_ssd(json, {.heads = "num_heads", .head_dim = "head_dim", .state = "ssm_state_size"}, c);
  c.is_recurrent.assign(c.layers, true);
  return c;
}

}  // namespace

Arch mamba2() { return decoder<SsdLayer>("mamba2", decode_as<decode_mamba2>); }

}  // namespace tandem::model::arch
