// Qwen2 and 2.5: llama's layer with biases on q, k and v.
#include "model/arch/llama_layer.h"

namespace tandem::model::arch {

Arch qwen2() { return decoder<LlamaLayer>("qwen2", decode_llama_config); }

}  // namespace tandem::model::arch
