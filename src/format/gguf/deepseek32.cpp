// DeepSeek V3.2.
#include "format/gguf/latent.h"

namespace tandem::format::gguf_arch {

static Status complete_deepseek32(const GgufMetadata& metadata, nlohmann::json& config) {
  if (Status gating = check_gguf_gating(metadata, 2); !gating) return gating;
  return complete_latent(metadata, config);
}

GgufArchitecture deepseek32() {
  GgufArchitecture out = latent_architecture("deepseek32", "deepseek_v32");
  add_indexer(out);
  out.complete = complete_deepseek32;
  return out;
}

}  // namespace tandem::format::gguf_arch
