// Qwen 2 and 2.5.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

GgufArchitecture qwen2() { return {.name = "qwen2", .model_type = "qwen2"}; }

}  // namespace tandem::format::gguf_arch
