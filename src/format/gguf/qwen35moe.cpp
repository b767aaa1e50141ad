// Qwen 3.5 and 3.6 with experts.
#include "format/gguf/delta.h"
#include "format/gguf/tiled_heads.h"

namespace tandem::format::gguf_arch {

GgufArchitecture qwen35moe() {
  GgufArchitecture out = delta_architecture("qwen35moe", "qwen3_5_moe");
  out.conversions = untiled_heads();
  add_delta_experts(out);
  return out;
}

}  // namespace tandem::format::gguf_arch
