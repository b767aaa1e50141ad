// What mamba2 and nemotron_h read from their configs, and what they refuse.
#include <doctest/doctest.h>

#include <limits>

#include "model/arch.h"

namespace tandem::model {
namespace {

using Json = nlohmann::json;

Config decode_ssd_family(const Json& json) {
  auto config = find_arch(json)->decode(json);
  REQUIRE_MESSAGE(config.has_value(), config.error().message);
  return *std::move(config);
}

std::string ssd_refusal(const Json& json) {
  const auto config = find_arch(json)->decode(json);
  return config ? std::string() : config.error().message;
}

bool refuses_ssd(Json json, const char* key, const Json& value) {
  json[key] = value;
  return ssd_refusal(json).find(key) != std::string::npos;
}

Json nemotron() {
  Json json = {{"model_type", "nemotron_h"}, {"hidden_size", 64},        {"num_hidden_layers", 6},
               {"num_attention_heads", 4},   {"num_key_value_heads", 2}, {"head_dim", 32},
               {"intermediate_size", 96},    {"vocab_size", 100}};
  json.update({{"layer_norm_epsilon", 1e-5},
               {"mamba_num_heads", 8},
               {"mamba_head_dim", 16},
               {"n_groups", 2},
               {"ssm_state_size", 32},
               {"conv_kernel", 4},
               {"hybrid_override_pattern", "M*-ME*"},
               {"n_routed_experts", 8},
               {"n_shared_experts", 1},
               {"num_experts_per_tok", 2},
               {"moe_intermediate_size", 32},
               {"moe_shared_expert_intermediate_size", 64}});
  return json;
}

TEST_CASE("families: nemotron_h's layers are what its pattern or its list says") {
  Json json = nemotron();
  const Config c = decode_ssd_family(json);
  CHECK(c.is_recurrent == std::vector<bool>{true, false, false, true, false, false});
  CHECK(c.is_mlp == std::vector<bool>{false, false, true, false, true, false});
  CHECK(c.has_experts == std::vector<bool>{false, false, false, false, true, false});
  CHECK(c.shape().channels == 128);
  CHECK(c.shape().channel_unit == 64);
  CHECK(c.shared_mlp == 64);
  CHECK(c.routing.renormalizes);
  json.erase("hybrid_override_pattern");
  json["layers_block_type"] = {"mamba", "attention", "mlp", "mamba", "moe", "attention"};
  CHECK(decode_ssd_family(json).is_mlp == c.is_mlp);
  CHECK(decode_ssd_family(json).is_recurrent == c.is_recurrent);
  json.erase("num_hidden_layers");
  CHECK(decode_ssd_family(json).layers == 6);
  json["num_hidden_layers"] = 7;
  CHECK(ssd_refusal(json).find("num_hidden_layers is 7, but 6") != std::string::npos);
  json.erase("layers_block_type");
  CHECK(ssd_refusal(json).find("hybrid_override_pattern is missing") != std::string::npos);
  json["hybrid_override_pattern"] = "M*-MX**";
  CHECK(ssd_refusal(json).find("layer 4 of") != std::string::npos);
  json["hybrid_override_pattern"] = "";
  CHECK(ssd_refusal(json).find("hybrid_override_pattern lists no layers") != std::string::npos);
  json["hybrid_override_pattern"] = {"M", 3};
  CHECK(ssd_refusal(json).find("layer 1 of") != std::string::npos);
}

TEST_CASE("families: what Mamba 2 cannot be is refused") {
  const Json json = nemotron();
  CHECK(refuses_ssd(json, "mamba_num_heads", 7));
  CHECK(refuses_ssd(json, "mamba_head_dim", 1 << 29));
  CHECK(refuses_ssd(json, "conv_kernel", 1));
  CHECK(refuses_ssd(json, "time_step_limit", {0.5, 0.25}));
  CHECK(refuses_ssd(json, "time_step_limit", {-1, 1}));
  CHECK(refuses_ssd(json, "time_step_limit", 1));
  CHECK(refuses_ssd(json, "mlp_hidden_act", "silu"));
  CHECK(refuses_ssd(json, "mamba_hidden_act", "gelu"));
  CHECK(refuses_ssd(json, "mlp_bias", true));
  CHECK(refuses_ssd(json, "num_experts_per_tok", 9));
  CHECK(refuses_ssd(json, "moe_latent_size", 0));
}

TEST_CASE("families: nemotron_h's experts may work on narrower vectors, and there may be none") {
  Json json = nemotron();
  CHECK(decode_ssd_family(json).expert_latent == 0);
  json["moe_latent_size"] = 48;
  CHECK(decode_ssd_family(json).expert_latent == 48);
  json.erase("moe_shared_expert_intermediate_size");
  CHECK(decode_ssd_family(json).shared_mlp == decode_ssd_family(json).mlp);
  json["hybrid_override_pattern"] = "M*-M-*";
  json["mlp_bias"] = true;  // of MLPs, which have no experts beside them
  CHECK(decode_ssd_family(json).experts == 0);
}

TEST_CASE("families: mamba2 has nothing but states, cut at heads where they share one group") {
  Json json = {{"model_type", "mamba2"}, {"hidden_size", 64},
               {"num_hidden_layers", 3}, {"num_heads", 8},
               {"head_dim", 16},         {"state_size", 32},
               {"n_groups", 1},          {"conv_kernel", 4},
               {"vocab_size", 100},      {"layer_norm_epsilon", 1e-5}};
  json["time_step_limit"] = {0.25, 1e308};
  const Config c = decode_ssd_family(json);
  CHECK(c.is_recurrent == std::vector<bool>(3, true));
  CHECK(c.delta.key_dim == 32);
  CHECK(c.delta.least_dt == 0.25F);
  CHECK(c.delta.most_dt == std::numeric_limits<float>::max());
  CHECK(c.shape().channel_unit == 16);
  json["n_groups"] = 4;
  CHECK(decode_ssd_family(json).shape().channel_unit == 32);
}

}  // namespace
}  // namespace tandem::model
