#include "model/config.h"

#include <doctest/doctest.h>

#include <cmath>

#include "model/arch.h"

namespace tandem::model {
namespace {

nlohmann::json good() {
  return {{"model_type", "llama"},    {"hidden_size", 64},          {"num_hidden_layers", 3},
          {"num_attention_heads", 4}, {"num_key_value_heads", 2},   {"intermediate_size", 96},
          {"vocab_size", 101},        {"rms_norm_eps", 1e-6},       {"rope_theta", 1e5},
          {"hidden_act", "silu"},     {"tie_word_embeddings", true}};
}

template <class V>
nlohmann::json with(const char* key, V value, nlohmann::json json = good()) {
  json[key] = value;
  return json;
}

void check_refused(const nlohmann::json& json, ErrorCode code, const std::string& word) {
  const auto config = decode_llama_config(json);
  REQUIRE_FALSE(config.has_value());
  CHECK(config.error().code == code);
  CAPTURE(config.error().message);
  CHECK(config.error().message.find(word) != std::string::npos);
}

TEST_CASE("head_dim and KV heads have their usual defaults") {
  auto json = good();
  json.erase("num_key_value_heads");
  const auto config = decode_llama_config(json);
  REQUIRE(config.has_value());
  CHECK(config->head_dim == 16);
  CHECK(config->kv_heads == 4);
  CHECK(config->windows == std::vector<uint32_t>{0, 0, 0});
}

TEST_CASE("a missing, mistyped or impossible field is refused by name") {
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads",
                          "intermediate_size", "vocab_size", "rms_norm_eps"}) {
    auto json = good();
    json.erase(key);
    check_refused(json, ErrorCode::kCorrupt, key);
    check_refused(with(key, "64"), ErrorCode::kCorrupt, key);
  }
  check_refused(with("hidden_size", -64), ErrorCode::kCorrupt, "hidden_size");
  check_refused(with("num_hidden_layers", 1'000'000), ErrorCode::kCorrupt, "num_hidden_layers");
  check_refused(with("hidden_size", 1.5), ErrorCode::kCorrupt, "hidden_size");
  check_refused(with("num_key_value_heads", 3), ErrorCode::kCorrupt, "KV heads");
  check_refused(with("tie_word_embeddings", 1), ErrorCode::kCorrupt, "tie_word_embeddings");
}

TEST_CASE("a number that no model can have is refused by name") {
  for (const double value : {2.0, -1.0, 0.0, 1e9, 1.001, 0.01}) {
    CAPTURE(value);
    check_refused(with("partial_rotary_factor", value), ErrorCode::kCorrupt,
                  "partial_rotary_factor should be above 0 and at most 1");
    check_refused(with("rope_parameters", nlohmann::json{{"partial_rotary_factor", value}}),
                  ErrorCode::kCorrupt, "partial_rotary_factor");
  }
  CHECK(decode_llama_config(with("partial_rotary_factor", 0.5))->rope->inverse_frequencies.size() ==
        4);
  for (const double value : {0.0, -1e-6, std::nan(""), HUGE_VAL}) {
    CAPTURE(value);
    check_refused(with("rms_norm_eps", value), ErrorCode::kCorrupt, "rms_norm_eps");
    check_refused(with("rope_theta", value), ErrorCode::kCorrupt, "rope_theta");
    check_refused(with("rope_parameters", nlohmann::json{{"rope_theta", value}}),
                  ErrorCode::kCorrupt, "rope_theta");
  }
}

TEST_CASE("what would change results and is not offered is refused") {
  check_refused(with("hidden_act", "gelu"), ErrorCode::kUnsupported, "gelu");
  check_refused(with("rope_scaling", nlohmann::json{{"rope_type", "dynamic"}, {"factor", 2}}),
                ErrorCode::kUnsupported, "dynamic");
  check_refused(with("layer_types", std::vector<std::string>(3, "chunked_attention")),
                ErrorCode::kUnsupported, "chunked");
}

TEST_CASE("windows follow layer_types, mistral's sliding_window and qwen's switch") {
  auto typed = with("sliding_window", 12);
  typed["layer_types"] = {"sliding_attention", "full_attention", "sliding_attention"};
  CHECK(decode_llama_config(typed)->windows == std::vector<uint32_t>{12, 0, 12});
  CHECK(decode_llama_config(with("sliding_window", 12))->windows == std::vector<uint32_t>{0, 0, 0});
  CHECK(decode_llama_config(with("sliding_window", 12, with("model_type", "mistral")))->windows ==
        std::vector<uint32_t>{12, 12, 12});
  auto qwen = with("sliding_window", 12, with("model_type", "qwen2"));
  qwen["max_window_layers"] = 2;
  CHECK(decode_llama_config(qwen)->windows == std::vector<uint32_t>{0, 0, 0});
  qwen["use_sliding_window"] = true;
  CHECK(decode_llama_config(qwen)->windows == std::vector<uint32_t>{0, 0, 12});
}

nlohmann::json with_experts() {
  auto json = with("model_type", "qwen3_moe");
  json.update({{"num_experts", 8}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 32}});
  return json;
}

std::string refusal_of_experts(const nlohmann::json& json) {
  const auto config = decode_qwen3_moe_config(json);
  return config ? std::string() : config.error().message;
}

TEST_CASE("layers have experts by decoder_sparse_step, but for those of mlp_only_layers") {
  auto json = with_experts();
  const auto plain = decode_qwen3_moe_config(json);
  REQUIRE(plain.has_value());
  CHECK(plain->has_experts == std::vector<bool>{true, true, true});
  CHECK(plain->experts == 8);
  CHECK(plain->experts_of_token == 2);
  CHECK(plain->shape().expert_mlp == 32);
  CHECK_FALSE(plain->routing.renormalizes);
  json["norm_topk_prob"] = true;
  json["mlp_only_layers"] = {1};
  const auto listed = decode_qwen3_moe_config(json);
  REQUIRE(listed.has_value());
  CHECK(listed->routing.renormalizes);
  CHECK(listed->has_experts == std::vector<bool>{true, false, true});
  json["decoder_sparse_step"] = 2;
  CHECK(decode_qwen3_moe_config(json)->has_experts == std::vector<bool>{false, false, false});
}

TEST_CASE("a config of experts that is missing, mistyped or impossible is refused by name") {
  for (const char* key : {"num_experts", "num_experts_per_tok", "moe_intermediate_size"}) {
    auto json = with_experts();
    json.erase(key);
    CHECK(refusal_of_experts(json).find(key) != std::string::npos);
  }
  const auto refused = [](const char* key, const nlohmann::json& value) {
    return refusal_of_experts(with(key, value, with_experts())).find(key) != std::string::npos;
  };
  CHECK(refused("num_experts_per_tok", 9));
  CHECK(refused("mlp_only_layers", {3}));
  CHECK(refused("mlp_only_layers", {"1"}));
  CHECK(refused("mlp_only_layers", 1));
  CHECK(refused("norm_topk_prob", 1));
  CHECK(refused("decoder_sparse_step", -1));
}

Result<Config> decode_lfm2_config(const nlohmann::json& json) {
  return find_arch(json)->decode(json);
}

nlohmann::json lfm2() {
  auto json = good();
  for (const char* key : {"rms_norm_eps", "intermediate_size", "tie_word_embeddings", "rope_theta"})
    json.erase(key);
  json.update({{"model_type", "lfm2"},
               {"norm_eps", 1e-5},
               {"conv_L_cache", 3},
               {"block_dim", 64},
               {"block_ff_dim", 100},
               {"block_multiple_of", 16},
               {"block_ffn_dim_multiplier", 1.5},
               {"block_auto_adjust_ff_dim", true},
               {"layer_types", {"conv", "full_attention", "conv"}}});
  return json;
}

TEST_CASE("lfm2: layers, taps, the MLP's width and the tied head are read as the reference does") {
  const auto config = decode_lfm2_config(lfm2());
  REQUIRE(config.has_value());
  CHECK(config->is_recurrent == std::vector<bool>{true, false, true});
  CHECK(config->conv_taps == 3);
  CHECK(config->mlp == 112);  // 100 * 2 / 3 = 66, * 1.5 = 99, to a multiple of 16
  CHECK(config->shape().channels == 64);
  CHECK(config->rms_eps == 1e-5);
  CHECK(config->has_tied_head);
  CHECK(config->rope->inverse_frequencies[1] == doctest::Approx(std::pow(1e6, -1.0 / 8)));
  auto json = lfm2();
  json["full_attn_idxs"] = {0};
  CHECK(decode_lfm2_config(json)->is_recurrent == std::vector<bool>{false, true, true});
  json["block_auto_adjust_ff_dim"] = false;
  json["tie_embedding"] = false;
  CHECK(decode_lfm2_config(json)->mlp == 100);
  CHECK_FALSE(decode_lfm2_config(json)->has_tied_head);
  json.erase("block_ff_dim");
  json["intermediate_size"] = 80;
  CHECK(decode_lfm2_config(json)->mlp == 80);
}

TEST_CASE("lfm2: a field that is missing, mistyped or impossible is refused by name") {
  const auto refusal = [](const char* key, const nlohmann::json& value) {
    const auto config = decode_lfm2_config(with(key, value, lfm2()));
    return config ? std::string() : config.error().message;
  };
  const auto is_named = [&](const char* key, const nlohmann::json& value) {
    return refusal(key, value).find(key) != std::string::npos;
  };
  for (const char* key : {"norm_eps", "conv_L_cache", "layer_types"}) CHECK(is_named(key, {}));
  CHECK(refusal("block_ff_dim", {}).find("intermediate_size") != std::string::npos);
  CHECK(is_named("conv_L_cache", 1));
  CHECK(is_named("conv_L_cache", 1000));
  CHECK(is_named("block_dim", 128));
  CHECK(is_named("block_ff_dim", -1));
  CHECK(is_named("block_ff_dim", 1));
  CHECK(is_named("block_multiple_of", 0));
  CHECK(is_named("block_ffn_dim_multiplier", -1));
  CHECK(is_named("block_auto_adjust_ff_dim", 1));
  CHECK(is_named("full_attn_idxs", {3}));
  CHECK(is_named("full_attn_idxs", 1));
  CHECK(is_named("layer_types", {"conv"}));
  CHECK(refusal("layer_types", {"conv", "conv", "sliding_attention"}).find("sliding_attention") !=
        std::string::npos);
}

TEST_CASE("rope factors divide the frequencies; a wrong number or value of them is refused") {
  const auto factors = [](const nlohmann::json& values) {
    return with("rope_scaling", nlohmann::json{{"rope_type", "factors"}, {"factors", values}});
  };
  const auto plain = decode_llama_config(good());
  const auto scaled = decode_llama_config(factors({1, 1, 1, 1, 2, 2, 4, 8.0}));  // head_dim is 16
  REQUIRE(plain.has_value());
  REQUIRE(scaled.has_value());
  const auto& before = plain->rope->inverse_frequencies;
  const auto& after = scaled->rope->inverse_frequencies;
  CHECK(after[3] == before[3]);
  CHECK(after[7] == doctest::Approx(before[7] / 8));
  check_refused(factors({1, 1, 1}), ErrorCode::kCorrupt, "8 numbers in factors");
  check_refused(factors({1, 1, 1, 1, 1, 1, 1, 0}), ErrorCode::kCorrupt, "above 0");
  check_refused(factors({1, 1, 1, 1, 1, 1, 1, "2"}), ErrorCode::kCorrupt, "above 0");
  check_refused(with("rope_scaling", nlohmann::json{{"rope_type", "factors"}}), ErrorCode::kCorrupt,
                "factors");
}

TEST_CASE("rope parameters are read from either spelling") {
  const nlohmann::json scaling = {{"rope_type", "linear"}, {"factor", 4.0}};
  const auto old_style = decode_llama_config(with("rope_scaling", scaling));
  auto parameters = scaling;
  parameters["rope_theta"] = 1e5;
  auto json = with("rope_parameters", parameters);
  json.erase("rope_theta");
  const auto new_style = decode_llama_config(json);
  REQUIRE(old_style.has_value());
  REQUIRE(new_style.has_value());
  CHECK(old_style->rope->inverse_frequencies == new_style->rope->inverse_frequencies);
  CHECK(old_style->rope->inverse_frequencies[0] == doctest::Approx(0.25));
}

}  // namespace
}  // namespace tandem::model
