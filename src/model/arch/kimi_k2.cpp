// Kimi K2, and the text model of K2.5: DeepSeek V3 by another name.
#include "model/arch/latent_layer.h"

namespace tandem::model::arch {

Arch kimi_k2() { return decoder<LatentLayer>("kimi_k2", decode_as<decode_deepseek_v3>); }

}  // namespace tandem::model::arch
