// DeepSeek V3, R1 and V3.1: latent attention, experts chosen by a biased sigmoid in groups.
#include "model/arch/latent_layer.h"

namespace tandem::model::arch {

Arch deepseek_v3() { return decoder<LatentLayer>("deepseek_v3", decode_as<decode_deepseek_v3>); }

}  // namespace tandem::model::arch
