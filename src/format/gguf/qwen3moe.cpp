// Qwen 3 with experts.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

GgufArchitecture qwen3moe() {
  GgufArchitecture out = {.name = "qwen3moe", .model_type = "qwen3_moe", .fields = gguf_experts()};
  out.fields.push_back({"norm_topk_prob", "expert_weights_norm", true});
  return out;
}

}  // namespace tandem::format::gguf_arch
