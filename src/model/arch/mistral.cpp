// Mistral: llama's layer, with windows in early versions.
#include "model/arch/llama_layer.h"

namespace tandem::model::arch {

Arch mistral() { return decoder<LlamaLayer>("mistral", decode_llama_config); }

}  // namespace tandem::model::arch
