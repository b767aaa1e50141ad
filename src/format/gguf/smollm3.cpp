// SmolLM 3. Every fourth layer has no rope, which files do not say.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

GgufArchitecture smollm3() {
  return {.name = "smollm3",
          .model_type = "smollm3",
          .fields = {{"rope_traditional", "", true}, {"no_rope_layer_interval", "", 4}}};
}

}  // namespace tandem::format::gguf_arch
