#include "app/auto_split.h"

#include <fmt/format.h>

#include <numeric>

namespace tandem::app {
namespace {

uint32_t count(const nlohmann::json& config, const char* key, uint32_t otherwise = 0) {
  const auto found = config.find(key);
  return found != config.end() && found->is_number_unsigned() ? found->get<uint32_t>() : otherwise;
}

/// Inputs that share a scale where a tensor split cuts inputs.
uint32_t quantization_group(const format::Checkpoint& checkpoint, uint32_t layers) {
  uint32_t group = 1;
  for (uint32_t i = 0; i < layers; ++i) {
    for (const char* leaf : {"self_attn.o_proj", "mlp.down_proj"}) {
      const auto found = checkpoint.quantization(fmt::format("model.layers.{}.{}", i, leaf));
      if (!found || !*found || (*found)->group_size <= 0) continue;
      group = std::lcm(group, static_cast<uint32_t>((*found)->group_size));
    }
  }
  return group;
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
  if (ranks > 1) shape.quant_group = quantization_group(checkpoint, shape.layers);
  return topology::choose_split({.shape = shape, .ranks = ranks, .shares = shares, .link = link});
}

}  // namespace tandem::app
