// Qwen3-Next: three of four layers attend by the gated delta rule; experts.
#include "model/arch/delta_layer.h"

namespace tandem::model::arch {

Arch qwen3_next() { return delta_decoder("qwen3_next", decode_as<decode_delta>); }

}  // namespace tandem::model::arch
