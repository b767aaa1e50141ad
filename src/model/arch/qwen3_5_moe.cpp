// Qwen 3.5 and 3.6 with experts.
#include "model/arch/delta_layer.h"

namespace tandem::model::arch {

Arch qwen3_5_moe() { return delta_decoder("qwen3_5_moe", decode_as<decode_qwen3_5>); }

}  // namespace tandem::model::arch
