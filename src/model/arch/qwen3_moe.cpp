// Qwen3 decoder with experts: qwen3's attention, and in most layers experts in place of the MLP.
#include "model/arch/moe_layer.h"

namespace tandem::model::arch {
namespace {

struct Qwen3MoeLayer : MoeLayer {
  Qwen3MoeLayer(const Config& c, const Weights& w, uint32_t index)
      : MoeLayer(c, w, index, {.attention = {.qk_norm = c.rms_eps}}) {}
};

}  // namespace

Arch qwen3_moe() { return decoder<Qwen3MoeLayer>("qwen3_moe", decode_qwen3_moe_config); }

}  // namespace tandem::model::arch
