// What LongCat-Flash reads from its config, and what it refuses.
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

}  // namespace
}  // namespace tandem::model
