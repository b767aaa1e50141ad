// Qwen 3.5 and 3.6: qwen3_next's layers with projections of their own for q, k and v, z, b and a.
#include "model/arch/delta_layer.h"

namespace tandem::model::arch {

Arch qwen3_5() { return delta_decoder("qwen3_5", decode_as<decode_qwen3_5>); }

}  // namespace tandem::model::arch
