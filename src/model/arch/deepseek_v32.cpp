// DeepSeek V3.2: V3 whose tokens attend to the keys that an indexer chooses.
#include "model/arch/latent_layer.h"

namespace tandem::model::arch {
Arch deepseek_v32() { return decoder<LatentLayer>("deepseek_v32", decode_as<decode_deepseek_v32>); }

}  // namespace tandem::model::arch
