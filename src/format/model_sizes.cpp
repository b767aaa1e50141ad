#include "format/model_sizes.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::format {
namespace {

constexpr uint32_t kMostLayers = 1024;  // a damaged file should not be built for minutes
constexpr uint64_t kWidest = 1U << 24;  // all heads of a layer together
constexpr uint32_t kUsualPositions = 32768;
constexpr uint32_t kUsualMultiple = 256;  // of lfm2

const nlohmann::json* find(const nlohmann::json& config, const char* key) {
  const auto found = config.find(key);
  return found == config.end() || found->is_null() ? nullptr : &*found;
}

Result<double> read_factor(const nlohmann::json& config, const char* key, double otherwise) {
  const nlohmann::json* found = find(config, key);
  if (found == nullptr) return otherwise;
  if (!found->is_number() || !(found->get<double>() > 0) || found->get<double>() > kWidest)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("config: {} should be a number above 0, is {}", key, found->dump())};
  return found->get<double>();
}

/// Two thirds of what lfm2 names, times a factor, rounded up to a multiple.
Result<uint32_t> adjusted(const nlohmann::json& config, uint32_t named) {
  const auto factor = read_factor(config, "block_ffn_dim_multiplier", 1);
  if (!factor) return factor.error();
  const auto multiple = read_count(config, "block_multiple_of", kUsualMultiple);
  if (!multiple) return multiple.error();
  const auto two_thirds = static_cast<uint32_t>(uint64_t{2} * named / 3);
  const auto width = static_cast<uint64_t>(*factor * two_thirds);
  const uint64_t rounded = (width + *multiple - 1) / *multiple * *multiple;
  if (rounded == 0 || rounded > kWidest)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("config: block_ff_dim {} stands for {} columns of the MLP: from 1 to "
                             "{} are possible",
                             named, rounded, kWidest)};
  return static_cast<uint32_t>(rounded);
}

Status check_width(const HeadSizes& sizes) {
  const uint64_t head = std::max(sizes.head_dim, sizes.value_dim), width = sizes.heads * head;
  if (sizes.head_dim != 0 && width <= kWidest) return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("config: num_attention_heads times head_dim should be from 1 to {}, is "
                           "{} times {}: correct config.json",
                           kWidest, sizes.heads, head)};
}

/// What families call their sizes.
struct SizeNames {
  const char* layers = "num_hidden_layers";
  const char* mlp = "intermediate_size";
  const char* expert_mlp = "moe_intermediate_size";
};

SizeNames names_of(const nlohmann::json& config) {
  const nlohmann::json* type = find(config, "model_type");
  if (type == nullptr || *type != "longcat_flash") return {};
  return {.layers = "num_layers", .mlp = "ffn_hidden_size", .expert_mlp = "expert_ffn_hidden_size"};
}

/// Adds what layers attend by.
Status read_attention(const nlohmann::json& config, ModelSizes& sizes) {
  const auto all = read_heads(config), window = read_window_heads(config);
  if (!all) return all.error();
  if (!window) return window.error();
  if (Status fits = check_width(*all); !fits) return fits;
  if (window->heads != 0)
    if (Status fits = check_width(*window); !fits) return fits;
  sizes.heads = all->heads;
  sizes.kv_heads = all->kv_heads;
  sizes.head_dim = all->head_dim;
  sizes.value_dim = all->value_dim;
  sizes.window = *window;
  if (sizes.layers > kMostLayers)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("config: {} should be at most {}, is {}", names_of(config).layers,
                             kMostLayers, sizes.layers)};
  auto sources = read_kv_sources(config, sizes.layers);
  if (!sources) return sources.error();
  sizes.kv_sources = *std::move(sources);
  return {};
}

/// The MLP's width, which a model of experts alone may leave out.
Result<uint32_t> read_usual_mlp(const nlohmann::json& config) {
  const SizeNames names = names_of(config);
  const bool has_experts_alone = !find(config, names.mlp) && find(config, names.expert_mlp);
  return read_count(config, has_experts_alone ? names.expert_mlp : names.mlp);
}

/// What mamba2 has in place of an MLP.
Result<uint32_t> inner_width(const nlohmann::json& config) {
  const auto heads = read_heads(config);
  if (!heads) return heads.error();
  return heads->heads * heads->head_dim;
}

/// num_hidden_layers, or as many as nemotron_h lists where it leaves that out.
Result<uint32_t> read_layers(const nlohmann::json& config) {
  const nlohmann::json* type = find(config, "model_type");
  const char* count = names_of(config).layers;
  if (type == nullptr || *type != "nemotron_h") return read_count(config, count);
  for (const char* key : {"hybrid_override_pattern", "layers_block_type", "layer_types"}) {
    const nlohmann::json* listed = find(config, key);
    if (listed == nullptr) continue;
    if (listed->empty() || (listed->is_string() && listed->get_ref<const std::string&>().empty()))
      return Error{ErrorCode::kCorrupt, fmt::format("config: {} lists no layers", key)};
    const size_t layers =
        listed->is_string() ? listed->get_ref<const std::string&>().size() : listed->size();
    return read_count(config, count, static_cast<uint32_t>(layers));
  }
  return read_count(config, count);
}

/// The usual, or how lfm2 says it: block_ff_dim where it is there, adjusted by default.
Result<uint32_t> read_mlp(const nlohmann::json& config) {
  const nlohmann::json* type = find(config, "model_type");
  const bool has_own_name = find(config, "block_ff_dim") != nullptr;
  if (type != nullptr && *type == "mamba2") return inner_width(config);
  if (type == nullptr || *type != "lfm2") return read_usual_mlp(config);
  const auto named = read_count(config, has_own_name ? "block_ff_dim" : "intermediate_size");
  if (!named) return named;
  const nlohmann::json* adjusts = find(config, "block_auto_adjust_ff_dim");
  if (adjusts != nullptr && !adjusts->is_boolean())
    return Error{ErrorCode::kCorrupt,
                 fmt::format("config: block_auto_adjust_ff_dim should be true or false, is {}",
                             adjusts->dump())};
  return adjusts != nullptr && !adjusts->get<bool>() ? named : adjusted(config, *named);
}

}  // namespace

Result<uint32_t> read_count(const nlohmann::json& config,
                            const char* key,
                            std::optional<uint32_t> otherwise) {
  const nlohmann::json* found = find(config, key);
  if (found == nullptr) {
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
  if (outcome) {
    const auto layers = read_layers(config);
    if (!layers) return layers.error();
    sizes.layers = *layers;
  }
  if (outcome) outcome = read_attention(config, sizes);
  if (outcome) {
    const auto mlp = read_mlp(config);
    if (!mlp) return mlp.error();
    sizes.mlp = *mlp;
  }
  read(sizes.expert_mlp, names_of(config).expert_mlp, 0);
  read(sizes.vocab, "vocab_size");
  const bool has_usual_name = find(config, "max_position_embeddings") != nullptr;
  read(sizes.max_positions, has_usual_name ? "max_position_embeddings" : "model_max_length",
       kUsualPositions);
  if (!outcome) return outcome.error();
  return sizes;
}

uint32_t ModelSizes::joined_layers() const {
  uint32_t first = layers;
  for (uint32_t i = 0; i < kv_sources.size(); ++i)
    if (kv_sources[i] != i) first = std::min(first, kv_sources[i]);
  return layers - first;
}

}  // namespace tandem::format
