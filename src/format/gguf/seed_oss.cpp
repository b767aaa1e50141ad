// Seed-OSS.
#include "format/gguf/architecture.h"

namespace tandem::format::gguf_arch {

GgufArchitecture seed_oss() { return {.name = "seed_oss", .model_type = "seed_oss"}; }

}  // namespace tandem::format::gguf_arch
