// SmolLM3: llama, but for some layers without a rope.
#include "model/arch/llama_layer.h"
#include "model/config_fields.h"

namespace tandem::model::arch {
namespace {

/// no_rope_layers lists 1 for each layer with a rope, 0 for one without; without the list every
/// no_rope_layer_interval-th has none.
std::vector<bool> decode_ropes(const Json& json, uint32_t layers) {
  std::vector<bool> out(layers);
  const Json* list = find(json, "no_rope_layers");
  if (list == nullptr) {
    const uint32_t interval =
        find(json, "no_rope_layer_interval") ? count(json, "no_rope_layer_interval") : 4;
    for (uint32_t i = 0; i < layers; ++i) out[i] = (i + 1) % interval != 0;
    return out;
  }
  if (!list->is_array() || list->size() != layers)
    refuse(ErrorCode::kCorrupt, fmt::format("no_rope_layers should have {} entries, one for each "
                                            "layer",
                                            layers));
  for (uint32_t i = 0; i < layers; ++i) {
    if (!(*list)[i].is_number_integer())
      refuse(ErrorCode::kCorrupt,
             fmt::format("no_rope_layers should list 0 and 1, lists {}", (*list)[i].dump()));
    out[i] = (*list)[i] != 0;
  }
  return out;
}

Config decode_smollm3(const Json& json) {
  Config c = decode_silu(json);
  c.has_rope = decode_ropes(json, c.layers);
  return c;
}

}  // namespace

Arch smollm3() { return decoder<LlamaLayer>("smollm3", decode_as<decode_smollm3>); }

}  // namespace tandem::model::arch
