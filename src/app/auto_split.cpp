#include "app/auto_split.h"

#include "format/quantization_group.h"

namespace tandem::app {
namespace {

uint32_t count(const nlohmann::json& config, const char* key, uint32_t otherwise = 0) {
  const auto found = config.find(key);
  return found != config.end() && found->is_number_unsigned() ? found->get<uint32_t>() : otherwise;
}

}  // namespace

topology::SplitChoice auto_split(const format::Checkpoint& checkpoint,
                                 uint32_t ranks,
                                 std::span<const double> shares,
                                 topology::Link link) {
  const nlohmann::json& config = checkpoint.config();
  topology::ModelShape shape;
  shape.layers = count(config, "num_hidden_layers");
  shape.heads = count(config, "num_attention_heads");
  shape.kv_heads = count(config, "num_key_value_heads", shape.heads);
  const uint32_t hidden = count(config, "hidden_size");
  shape.head_dim = count(config, "head_dim", shape.heads == 0 ? 0 : hidden / shape.heads);
  shape.mlp = count(config, "intermediate_size");
  shape.vocab = count(config, "vocab_size");
  if (ranks > 1) {
    const auto group = format::quantization_group(checkpoint, shape.layers);
    if (group) shape.quant_group = *group;
  }
  return topology::choose_split({.shape = shape, .ranks = ranks, .shares = shares, .link = link});
}

}  // namespace tandem::app
