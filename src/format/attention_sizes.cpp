#include "format/attention_sizes.h"

#include <fmt/format.h>

#include <map>

#include "format/model_sizes.h"

namespace tandem::format {
namespace {

const nlohmann::json* field_of(const nlohmann::json& config, const char* key) {
  const auto found = config.find(key);
  return found == config.end() || found->is_null() ? nullptr : &*found;
}

bool is_of_type(const nlohmann::json& config, const char* model_type) {
  const nlohmann::json* type = field_of(config, "model_type");
  return type != nullptr && *type == model_type;
}

/// A field, and what it is where it is missing.
struct Field {
  const char* key;
  std::optional<uint32_t> otherwise = {};
};

Result<HeadSizes> read_head_sizes(const nlohmann::json& config,
                                  Field heads,
                                  Field kv_heads,
                                  Field head_dim) {
  const auto all = read_count(config, heads.key, heads.otherwise);
  if (!all) return all.error();
  const auto kv = read_count(config, kv_heads.key, kv_heads.otherwise.value_or(*all));
  if (!kv) return kv.error();
  uint32_t usual_dim = head_dim.otherwise.value_or(0);
  if (usual_dim == 0 && field_of(config, head_dim.key) == nullptr) {
    const auto hidden = read_count(config, "hidden_size");
    if (!hidden) return hidden.error();
    usual_dim = *hidden / *all;
  }
  const auto dim = read_count(config, head_dim.key, usual_dim);
  if (!dim) return dim.error();
  return HeadSizes{.heads = *all, .kv_heads = *kv, .head_dim = *dim};
}

Result<HeadSizes> read_gemma4_windows(const nlohmann::json& config) {
  return read_head_sizes(config, {"num_attention_heads", 8}, {"num_key_value_heads", 1},
                         {"head_dim", 256});
}

/// Layers that see everything have wider heads, and fewer KV heads where keys are values too.
Result<HeadSizes> read_gemma4(const nlohmann::json& config) {
  auto sizes = read_gemma4_windows(config);
  if (!sizes) return sizes;
  const bool is_missing = !config.contains("global_head_dim");
  const auto dim = read_count(config, "global_head_dim", is_missing ? 512 : sizes->head_dim);
  if (!dim) return dim.error();
  sizes->head_dim = *dim;
  const nlohmann::json* same = field_of(config, "attention_k_eq_v");
  if (same == nullptr || *same != true) return sizes;
  const auto kv_heads = read_count(config, "num_global_key_value_heads", sizes->kv_heads);
  if (!kv_heads) return kv_heads.error();
  sizes->kv_heads = *kv_heads;
  return sizes;
}

Error contradiction(std::string message) { return {ErrorCode::kCorrupt, std::move(message)}; }

/// How many of the last layers have no keys and values of their own.
Result<uint32_t> read_sharing(const nlohmann::json& config, uint32_t layers) {
  const nlohmann::json* shared = field_of(config, "num_kv_shared_layers");
  if (shared == nullptr) return contradiction("config: num_kv_shared_layers is missing");
  if (*shared == 0) return 0U;
  const auto count = read_count(config, "num_kv_shared_layers");
  if (!count) return count.error();
  if (*count >= layers)
    return contradiction(fmt::format(
        "config: num_kv_shared_layers should be below the {} layers, is {}", layers, *count));
  return *count;
}

/// Layers that see a window have what attention_other_setting says, where it is there.
Result<HeadSizes> read_step3p5_windows(const nlohmann::json& config) {
  const nlohmann::json* other = field_of(config, "attention_other_setting");
  if (other == nullptr) return HeadSizes{};
  if (!other->is_object())
    return contradiction("config: attention_other_setting should be an object");
  auto sizes =
      read_head_sizes(*other, {"num_attention_heads"}, {"num_attention_groups"}, {"head_dim", 1});
  const auto dim = read_count(config, "head_dim");
  if (!sizes) return sizes;
  if (!dim) return dim.error();
  sizes->head_dim = *dim;
  return sizes;
}

/// Values have a width of their own.
Result<HeadSizes> read_mimo_v2(const nlohmann::json& config,
                               Field heads,
                               Field kv_heads,
                               Field head_dim,
                               const char* value_dim) {
  auto sizes = read_head_sizes(config, heads, kv_heads, head_dim);
  const auto keys = read_count(config, head_dim.key), values = read_count(config, value_dim);
  if (!sizes) return sizes;
  if (!keys) return keys.error();
  if (!values) return values.error();
  sizes->value_dim = *values;
  return sizes;
}

}  // namespace

Result<HeadSizes> read_heads(const nlohmann::json& config) {
  if (is_of_type(config, "step3p5"))
    return read_head_sizes(config, {"num_attention_heads"}, {"num_attention_groups"}, {"head_dim"});
  if (is_of_type(config, "gemma4_text")) return read_gemma4(config);
  if (is_of_type(config, "mamba2"))
    return read_head_sizes(config, {"num_heads"}, {"num_heads"}, {"head_dim"});
  if (is_of_type(config, "mimo_v2_flash"))
    return read_mimo_v2(config, {"num_attention_heads"}, {"num_key_value_heads"}, {"head_dim"},
                        "v_head_dim");
  return read_head_sizes(config, {"num_attention_heads"}, {"num_key_value_heads"}, {"head_dim"});
}

Result<HeadSizes> read_window_heads(const nlohmann::json& config) {
  if (is_of_type(config, "step3p5")) return read_step3p5_windows(config);
  if (is_of_type(config, "gemma4_text")) return read_gemma4_windows(config);
  if (is_of_type(config, "mimo_v2_flash"))
    return read_mimo_v2(config, {"swa_num_attention_heads"}, {"swa_num_key_value_heads"},
                        {"swa_head_dim"}, "swa_v_head_dim");
  return HeadSizes{};
}

Result<std::vector<uint32_t>> read_kv_sources(const nlohmann::json& config, uint32_t layers) {
  std::vector<uint32_t> sources;
  if (!is_of_type(config, "gemma4_text")) return sources;
  const auto sharing = read_sharing(config, layers);
  if (!sharing) return sharing.error();
  if (*sharing == 0) return sources;
  const nlohmann::json* types = field_of(config, "layer_types");
  if (types == nullptr || !types->is_array() || types->size() != layers)
    return contradiction("config: layer_types should have one entry for each layer");
  std::map<std::string, uint32_t> last;  // of each type
  for (uint32_t i = 0; i < layers; ++i) {
    const std::string type = (*types)[i].dump();
    if (i < layers - *sharing) last[type] = i;
    if (!last.contains(type))
      return contradiction(
          fmt::format("config: layer {} shares keys and values (num_kv_shared_layers), "
                      "but no layer of type {} before has some",
                      i, type));
    sources.push_back(last[type]);
  }
  return sources;
}

}  // namespace tandem::format
