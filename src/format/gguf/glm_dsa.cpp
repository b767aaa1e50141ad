// GLM 5 and 5.1. GLM 5.2 shares choices between layers, which models here do not.
#include <algorithm>

#include "format/gguf/latent.h"

namespace tandem::format::gguf_arch {

static Status complete_glm_dsa(const GgufMetadata& metadata, nlohmann::json& config) {
  const auto types = metadata.list("attention.indexer.types");
  if (std::ranges::find(types, 0) != types.end())
    return Error{ErrorCode::kUnsupported,
                 "gguf: glm-dsa.attention.indexer.types has layers that share a choice of keys, "
                 "which is not supported"};
  if (Status gating = check_gguf_gating(metadata, 2); !gating) return gating;
  return complete_latent(metadata, config);
}

GgufArchitecture glm_dsa() {
  GgufArchitecture out = latent_architecture("glm-dsa", "glm_moe_dsa");
  add_indexer(out);
  out.complete = complete_glm_dsa;
  return out;
}

}  // namespace tandem::format::gguf_arch
