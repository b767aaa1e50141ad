// Qwen3 dense decoder: llama's layer with an RMS norm of each q and k head.
#include "model/arch/llama_layer.h"

namespace tandem::model::arch {
namespace {

struct Qwen3Layer : LlamaLayer {
  Qwen3Layer(const Config& c, const Weights& w, uint32_t index)
      : LlamaLayer(c, w, index, {.qk_norm = c.rms_eps}) {}
};

}  // namespace

Arch qwen3() { return decoder<Qwen3Layer>("qwen3", decode_llama_config); }

}  // namespace tandem::model::arch
