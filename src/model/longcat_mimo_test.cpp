// What LongCat-Flash and MiMo read from their configs, and what they refuse.
#include <doctest/doctest.h>

#include "model/arch.h"

namespace tandem::model {
namespace {

nlohmann::json longcat() {
  return {{"model_type", "longcat_flash"},
          {"hidden_size", 64},
          {"num_layers", 3},
          {"num_attention_heads", 4},
          {"ffn_hidden_size", 96},
          {"expert_ffn_hidden_size", 32},
          {"vocab_size", 100},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 1e7},
          {"q_lora_rank", 16},
          {"kv_lora_rank", 4},
          {"qk_nope_head_dim", 24},
          {"qk_rope_head_dim", 8},
          {"v_head_dim", 16},
          {"mla_scale_q_lora", true},
          {"mla_scale_kv_lora", true},
          {"n_routed_experts", 8},
          {"zero_expert_num", 4},
          {"zero_expert_type", "identity"},
          {"moe_topk", 10},
          {"routed_scaling_factor", 6.0}};
}

nlohmann::json mimo_v2() {
  return {{"model_type", "mimo_v2_flash"},
          {"hidden_size", 64},
          {"num_hidden_layers", 3},
          {"intermediate_size", 96},
          {"vocab_size", 100},
          {"layernorm_epsilon", 1e-5},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 48},
          {"v_head_dim", 32},
          {"swa_num_attention_heads", 8},
          {"swa_num_key_value_heads", 4},
          {"swa_head_dim", 24},
          {"swa_v_head_dim", 16},
          {"hybrid_layer_pattern", {0, 1, 1}},
          {"sliding_window_size", 20},
          {"add_swa_attention_sink_bias", true},
          {"add_full_attention_sink_bias", false},
          {"attention_value_scale", 0.707},
          {"partial_rotary_factor", 0.334},
          {"rope_theta", 5e6},
          {"swa_rope_theta", 1e4},
          {"moe_layer_freq", {0, 1, 1}},
          {"n_routed_experts", 8},
          {"n_shared_experts", nullptr},
          {"num_experts_per_tok", 3},
          {"moe_intermediate_size", 32},
          {"routed_scaling_factor", nullptr}};
}

Config config_of(const nlohmann::json& json) {
  auto config = find_arch(json)->decode(json);
  REQUIRE_MESSAGE(config.has_value(), config.error().message);
  return *std::move(config);
}

/// Whether the config with this in it is refused by the field's name.
bool refuses_field(nlohmann::json json, const char* key, const nlohmann::json& value) {
  json[key] = value;
  const auto config = find_arch(json)->decode(json);
  return !config && config.error().message.find(key) != std::string::npos;
}

TEST_CASE("families: longcat_flash keeps two latent vectors a layer, scaled by their ranks") {
  const Config c = config_of(longcat());
  CHECK(c.layers == 3);
  CHECK(c.attentions == 2);
  CHECK(c.mlp == 96);
  CHECK(c.latent.scale == 4);
  CHECK(c.latent.eps == 1e-5);
  CHECK(c.attention_scale == doctest::Approx(2 / std::sqrt(32.0)));
  CHECK(c.rope->interleaved);
  nlohmann::json json = longcat();
  json["mla_scale_q_lora"] = json["mla_scale_kv_lora"] = false;
  CHECK(config_of(json).latent.scale == 1);
  CHECK(config_of(json).attention_scale == doctest::Approx(1 / std::sqrt(32.0)));
  json["q_lora_rank"] = nullptr;
  CHECK(config_of(json).latent.query_rank == 0);
}

TEST_CASE("families: longcat_flash chooses among experts and identities by one softmax") {
  const Config c = config_of(longcat());
  CHECK(c.experts == 8);
  CHECK(c.identity_experts == 4);
  CHECK(c.experts_of_token == 10);
  CHECK(c.expert_mlp == 32);
  CHECK(c.routing.score == tensor::ExpertScore::kSoftmax);
  CHECK(c.routing.scale == 6);
  CHECK_FALSE(c.routing.renormalizes);
  nlohmann::json json = longcat();
  json["moe_topk"] = 8;
  json["zero_expert_num"] = 0;
  CHECK(config_of(json).identity_experts == 0);
}

TEST_CASE("families: a config of longcat_flash that cannot be served is refused by name") {
  for (const char* key : {"num_layers", "ffn_hidden_size", "expert_ffn_hidden_size", "kv_lora_rank",
                          "n_routed_experts", "moe_topk", "routed_scaling_factor"}) {
    CAPTURE(key);
    CHECK(refuses_field(longcat(), key, nullptr));
    CHECK(refuses_field(longcat(), key, "x"));
  }
  CHECK(refuses_field(longcat(), "moe_topk", 13));
  CHECK(refuses_field(longcat(), "zero_expert_num", -1));
  CHECK(refuses_field(longcat(), "zero_expert_type", "copy"));
  CHECK(refuses_field(longcat(), "attention_method", "MHA"));
  CHECK(refuses_field(longcat(), "q_lora_rank", nullptr));  // its scale has none to come from
}

TEST_CASE("families: mimo_v2_flash has heads, ropes and sinks by kind, and narrow values") {
  const Config c = config_of(mimo_v2());
  CHECK(c.windows == std::vector<uint32_t>{0, 20, 20});
  CHECK(c.head_dim == 48);
  CHECK(c.value_dim == 32);
  CHECK(c.window_heads == topology::HeadShape{8, 4, 24, 16});
  CHECK(c.rope->inverse_frequencies.size() == 8);
  CHECK(c.rope->inverse_frequencies.back() == doctest::Approx(std::pow(5e6, -14.0 / 16)));
  CHECK(c.window_rope->inverse_frequencies.size() == 4);
  CHECK(c.window_rope->inverse_frequencies.back() == doctest::Approx(std::pow(1e4, -6.0 / 8)));
  CHECK(c.has_window_sinks);
  CHECK_FALSE(c.has_sinks);
  CHECK(c.value_scale == 0.707);
  CHECK(c.has_experts == std::vector<bool>{false, true, true});
  CHECK(c.shared_mlp == 0);
  CHECK(c.routing.scale == 1);
  CHECK(c.routing.score == tensor::ExpertScore::kSigmoid);
  nlohmann::json json = mimo_v2();
  json["sliding_window_size"] = nullptr;
  json["sliding_window"] = 30;
  json["n_shared_experts"] = 2;
  json["attention_value_scale"] = nullptr;
  CHECK(config_of(json).windows.back() == 30);
  CHECK(config_of(json).shared_mlp == 64);
  CHECK(config_of(json).value_scale == 1);
}

TEST_CASE("families: a config of mimo_v2_flash that cannot be served is refused by name") {
  for (const char* key :
       {"layernorm_epsilon", "v_head_dim", "swa_head_dim", "swa_num_attention_heads",
        "hybrid_layer_pattern", "moe_layer_freq", "swa_rope_theta", "n_routed_experts"}) {
    CAPTURE(key);
    CHECK(refuses_field(mimo_v2(), key, nullptr));
    CHECK(refuses_field(mimo_v2(), key, "x"));
  }
  for (const char* key : {"hybrid_layer_pattern", "moe_layer_freq"}) {
    CHECK(refuses_field(mimo_v2(), key, {0, 1}));
    CHECK(refuses_field(mimo_v2(), key, {0, 1, 2}));
  }
  CHECK(refuses_field(mimo_v2(), "attention_value_scale", 0));
  CHECK(refuses_field(mimo_v2(), "attention_projection_layout", "fused_qkv"));
  CHECK(refuses_field(mimo_v2(), "rope_parameters", nlohmann::json::object()));
  CHECK(refuses_field(mimo_v2(), "scoring_func", "softmax"));
}

}  // namespace
}  // namespace tandem::model
