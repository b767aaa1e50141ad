#include "model/config_fields.h"

#include <fmt/format.h>

#include <cmath>

#include "format/model_sizes.h"

namespace tandem::model {

void refuse(ErrorCode code, std::string message) { throw Refusal{{code, "config: " + message}}; }

const Json* find(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it == json.end() || it->is_null() ? nullptr : &*it;
}

uint32_t count(const Json& json, const char* key) {
  const auto value = format::read_count(json, key);
  if (!value) throw Refusal{value.error()};
  return *value;
}

double real(const Json& json, const char* key, std::optional<double> otherwise) {
  const Json* value = find(json, key);
  if (value == nullptr && otherwise) return *otherwise;
  if (value == nullptr) refuse(ErrorCode::kCorrupt, fmt::format("{} is missing", key));
  if (!value->is_number() || !std::isfinite(value->get<double>()))
    refuse(ErrorCode::kCorrupt, fmt::format("{} should be a number, is {}", key, value->dump()));
  return value->get<double>();
}

double above_zero(const Json& json, const char* key, std::optional<double> otherwise) {
  const double value = real(json, key, otherwise);
  if (value <= 0)
    refuse(ErrorCode::kCorrupt,
           fmt::format("{} should be above 0, is {}: correct config.json", key, value));
  return value;
}

bool flag(const Json& json, const char* key, bool otherwise) {
  const Json* value = find(json, key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean())
    refuse(ErrorCode::kCorrupt,
           fmt::format("{} should be true or false, is {}", key, value->dump()));
  return value->get<bool>();
}

std::string text(const Json& json, const char* key, const char* otherwise) {
  const Json* value = find(json, key);
  if (value == nullptr) return otherwise;
  if (!value->is_string())
    refuse(ErrorCode::kCorrupt, fmt::format("{} should be a string, is {}", key, value->dump()));
  return value->get<std::string>();
}

void require_text(const Json& json, const char* key, const char* only) {
  const std::string found = text(json, key, only);
  if (found != only)
    refuse(ErrorCode::kUnsupported, fmt::format("{} {} is not supported; {} is", key, found, only));
}

void clear_listed(const Json& json, const char* key, std::vector<bool>& layers) {
  const Json* listed = find(json, key);
  if (listed == nullptr || !listed->is_array())
    refuse(ErrorCode::kCorrupt, fmt::format("{} should be a list", key));
  for (const Json& layer : *listed) {
    if (!layer.is_number_integer() || layer < 0 || layer >= layers.size())
      refuse(ErrorCode::kCorrupt,
             fmt::format("{} lists {}; there are {} layers", key, layer.dump(), layers.size()));
    layers[layer.get<size_t>()] = false;
  }
}

Json with_defaults(Json json, const Json& otherwise) {
  for (const auto& [key, value] : otherwise.items())
    if (find(json, key.c_str()) == nullptr) json[key] = value;
  return json;
}

Json with_rotary_dim(Json json) {
  if (find(json, "rotary_dim") == nullptr) return json;
  const uint32_t head_dim = find(json, "head_dim") != nullptr
                                ? count(json, "head_dim")
                                : count(json, "hidden_size") / count(json, "num_attention_heads");
  const uint32_t rotated = count(json, "rotary_dim");
  if (head_dim == 0 || rotated > head_dim)
    refuse(ErrorCode::kCorrupt,
           fmt::format("rotary_dim should be at most head_dim {}, is {}", head_dim, rotated));
  json["partial_rotary_factor"] = static_cast<double>(rotated) / head_dim;
  for (const char* rope : {"rope_parameters", "rope_scaling"})
    if (find(json, rope) != nullptr && json[rope].is_object())
      json[rope].erase("partial_rotary_factor");
  return json;
}

Result<Config> decoded(Config (*decode)(const Json&), const Json& json) {
  try {
    return decode(json);
  } catch (const Refusal& refusal) {
    return refusal.error;
  }
}

}  // namespace tandem::model
