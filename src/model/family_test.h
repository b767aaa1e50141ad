// Configs of families, for tests of what is read from them.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "model/arch.h"

namespace tandem::model {

using Json = nlohmann::json;

/// What most families' configs say.
inline Json base(const char* model_type) {
  return {{"model_type", model_type},       {"hidden_size", 64},        {"num_hidden_layers", 6},
          {"num_attention_heads", 4},       {"num_key_value_heads", 2}, {"head_dim", 32},
          {"intermediate_size", 96},        {"vocab_size", 100},        {"rms_norm_eps", 1e-6},
          {"max_position_embeddings", 4096}};
}

/// Requires one that is served.
inline Config decode(const Json& json) {
  const auto arch = find_arch(json);
  REQUIRE(arch.has_value());
  auto config = arch->decode(json);
  REQUIRE_MESSAGE(config.has_value(), config.error().message);
  return *std::move(config);
}

/// The error; empty where there is none.
inline std::string config_refusal(const Json& json) {
  const auto config = find_arch(json)->decode(json);
  return config ? std::string() : config.error().message;
}

/// Whether the config with this value is refused, and the error names the key.
inline bool refuses(Json json, const char* key, const Json& value) {
  json[key] = value;
  return config_refusal(json).find(key) != std::string::npos;
}

}  // namespace tandem::model
