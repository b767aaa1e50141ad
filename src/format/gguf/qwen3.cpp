// Qwen 3.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

GgufArchitecture qwen3() { return {.name = "qwen3", .model_type = "qwen3"}; }

}  // namespace tandem::format::gguf_arch
