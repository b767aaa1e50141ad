// Ministral 3 and Devstral 2: llama with windows, yarn, and queries that grow with their position.
#include "model/arch/llama_layer.h"
#include "model/config_fields.h"

namespace tandem::model::arch {
namespace {

Config decode_ministral3(const Json& json) {
  Config c = decode_silu(with_defaults(json, {{"tie_word_embeddings", true}}));
  c.query_scale = decode_query_scale(json);
  return c;
}

}  // namespace

Arch ministral3() { return decoder<LlamaLayer>("ministral3", decode_as<decode_ministral3>); }

}  // namespace tandem::model::arch
