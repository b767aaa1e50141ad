// Seed-OSS: llama with biases of q, k and v and a head_dim of its own.
#include "model/arch/llama_layer.h"
#include "model/config_fields.h"

namespace tandem::model::arch {
namespace {

Config decode_seed_oss(const Json& json) {
  return decode_silu(with_defaults(json, {{"tie_word_embeddings", true}, {"rope_theta", 10'000}}));
}

}  // namespace

Arch seed_oss() { return decoder<LlamaLayer>("seed_oss", decode_as<decode_seed_oss>); }

}  // namespace tandem::model::arch
