// MiMo 7B: Qwen 2 with layers for predicting several tokens, which are left out.
#include "model/arch/llama_layer.h"

namespace tandem::model::arch {

Arch mimo() { return decoder<LlamaLayer>("mimo", decode_llama_config); }

}  // namespace tandem::model::arch
