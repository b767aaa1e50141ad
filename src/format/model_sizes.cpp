#include "format/model_sizes.h"

#include <fmt/format.h>

namespace tandem::format {
namespace {

constexpr uint32_t kMostLayers = 1024;  // a damaged file should not be built for minutes
constexpr uint64_t kWidest = 1U << 24;  // all heads of a layer together
constexpr uint32_t kUsualPositions = 32768;

}  // namespace

Result<uint32_t> read_count(const nlohmann::json& config,
                            const char* key,
                            std::optional<uint32_t> otherwise) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) {
    if (otherwise) return *otherwise;
    return Error{ErrorCode::kCorrupt, fmt::format("config: {} is missing", key)};
  }
  if (!found->is_number_integer() || *found <= 0 || *found > (1U << 30))
    return Error{ErrorCode::kCorrupt,
                 fmt::format("config: {} should be a positive integer, is {}", key, found->dump())};
  return found->get<uint32_t>();
}

Result<ModelSizes> read_sizes(const nlohmann::json& config) {
  ModelSizes sizes;
  Status outcome;
  const auto read = [&](uint32_t& to, const char* key, std::optional<uint32_t> otherwise = {}) {
    if (!outcome) return;
    const auto value = read_count(config, key, otherwise);
    if (value)
      to = *value;
    else
      outcome = value.error();
  };
  read(sizes.hidden, "hidden_size");
  read(sizes.layers, "num_hidden_layers");
  read(sizes.heads, "num_attention_heads");
  read(sizes.kv_heads, "num_key_value_heads", sizes.heads);
  read(sizes.head_dim, "head_dim", sizes.heads == 0 ? 0 : sizes.hidden / sizes.heads);
  read(sizes.mlp, "intermediate_size");
  read(sizes.expert_mlp, "moe_intermediate_size", 0);
  read(sizes.vocab, "vocab_size");
  read(sizes.max_positions, "max_position_embeddings", kUsualPositions);
  if (!outcome) return outcome.error();
  if (sizes.layers > kMostLayers)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("config: num_hidden_layers should be at most {}, is {}", kMostLayers,
                             sizes.layers)};
  const uint64_t width = uint64_t{sizes.heads} * sizes.head_dim;
  if (width == 0 || width > kWidest)
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("config: num_attention_heads times head_dim should be from 1 to {}, is "
                    "{} times {}: correct config.json",
                    kWidest, sizes.heads, sizes.head_dim)};
  return sizes;
}

}  // namespace tandem::format
