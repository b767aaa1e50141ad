// Phi 3 and 4: llama with q, k, v in one matrix, gate and up in another, and longrope.
#include "model/arch/llama_layer.h"

namespace tandem::model::arch {
namespace {

struct Phi3Layer : LlamaLayer {
  Phi3Layer(const Config& c, const Weights& w, uint32_t index)
      : LlamaLayer(c, w, index, {.fused = "qkv_proj"}) {}
};

}  // namespace

Arch phi3() { return decoder<Phi3Layer>("phi3", decode_llama_config); }

}  // namespace tandem::model::arch
