// Phi 3 and 4, with q, k and v in one matrix, gate and up in another, and longrope.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

static Status complete_phi3(const GgufMetadata& metadata, nlohmann::json& config) {
  if (!metadata.has("rope_factors_long.weight")) return {};
  const auto far = metadata.floats("rope_factors_long.weight");
  if (!far) return far.error();
  config["rope_scaling"] = {{"rope_type", "longrope"}, {"long_factor", *far}};
  return {};
}

GgufArchitecture phi3() {
  return {.name = "phi3",
          .model_type = "phi3",
          .names = {{"attn_qkv", "self_attn.qkv_proj"}, {"ffn_up", "mlp.gate_up_proj"}},
          .fields = {{"original_max_position_embeddings", "rope.scaling.original_context_length",
                      nullptr}},
          .complete = complete_phi3};
}

}  // namespace tandem::format::gguf_arch
