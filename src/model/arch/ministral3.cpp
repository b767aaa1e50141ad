// Ministral 3 and Devstral 2: llama with windows, yarn, and queries that grow with their position.
#include "model/arch/llama_layer.h"
#include "model/config_fields.h"

namespace tandem::model::arch {
namespace {

Config decode_ministral3(const Json& json) {
  Config c = decode_silu(with_defaults(json, {{"tie_word_embeddings", true}}));
  const Json* rope = find(json, "rope_parameters");
  if (rope == nullptr || !rope->is_object())
    refuse(ErrorCode::kCorrupt, "rope_parameters should be an object");
  c.query_scale = {.beta = static_cast<float>(real(*rope, "llama_4_scaling_beta")),
                   .context = count(*rope, "original_max_position_embeddings")};
  return c;
}

}  // namespace

Arch ministral3() { return decoder<LlamaLayer>("ministral3", decode_as<decode_ministral3>); }

}  // namespace tandem::model::arch
