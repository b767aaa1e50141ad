// Llama 1 to 3 and fine-tunes.
#include "model/arch/llama_layer.h"

namespace tandem::model::arch {

Arch llama() { return decoder<LlamaLayer>("llama", decode_llama_config); }

}  // namespace tandem::model::arch
