// Qwen 3.5 and 3.6. The rope of images is the plain one for text.
#include "format/gguf/delta.h"
#include "format/gguf/tiled_heads.h"

namespace tandem::format::gguf_arch {

GgufArchitecture qwen35() {
  GgufArchitecture out = delta_architecture("qwen35", "qwen3_5");
  out.conversions = untiled_heads();
  return out;
}

}  // namespace tandem::format::gguf_arch
