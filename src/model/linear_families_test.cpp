// What kimi_linear and bailing_hybrid read from their configs, and what they refuse.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "model/arch.h"

namespace tandem::model {
namespace {

using LinearJson = nlohmann::json;

LinearJson linear_base(const char* model_type) {
  return {{"model_type", model_type},  {"hidden_size", 64},
          {"num_hidden_layers", 6},    {"num_attention_heads", 4},
          {"num_key_value_heads", 4},  {"head_dim", 32},
          {"intermediate_size", 96},   {"vocab_size", 100},
          {"rms_norm_eps", 1e-5},      {"kv_lora_rank", 48},
          {"qk_nope_head_dim", 24},    {"qk_rope_head_dim", 8},
          {"v_head_dim", 16},          {"num_experts", 8},
          {"num_shared_experts", 2},   {"moe_intermediate_size", 32},
          {"first_k_dense_replace", 1}};
}

LinearJson kimi() {
  LinearJson json = linear_base("kimi_linear");
  json.update({{"model_max_length", 2048},
               {"num_experts_per_token", 3},
               {"linear_attn_config",
                {{"kda_layers", {1, 2, 3, 5}},
                 {"full_attn_layers", {4, 6}},
                 {"num_heads", 6},
                 {"head_dim", 16}}}});
  return json;
}

LinearJson bailing() {
  LinearJson json = linear_base("bailing_hybrid");
  json.update({{"num_experts_per_tok", 3},
               {"n_group", 4},
               {"topk_group", 2},
               {"layer_group_size", 4},
               {"group_norm_size", 8},
               {"routed_scaling_factor", 2.5}});
  return json;
}

Config decode_linear(const LinearJson& json) {
  auto config = find_arch(json)->decode(json);
  REQUIRE_MESSAGE(config.has_value(), config.error().message);
  return *std::move(config);
}

bool refuses_linear(LinearJson json, const LinearJson::json_pointer& at, const LinearJson& value) {
  json[at] = value;
  const auto config = find_arch(json)->decode(json);
  return !config && config.error().message.find(at.back()) != std::string::npos;
}

TEST_CASE("families: kimi_linear's lists count layers from 1, and its latent keys are not turned") {
  const Config c = decode_linear(kimi());
  CHECK(c.is_recurrent == std::vector<bool>{true, true, true, false, true, false});
  CHECK(c.rope == nullptr);
  CHECK(c.latent.key() == 56);
  CHECK(c.latent.eps == 1e-5);
  CHECK(c.attention_scale == doctest::Approx(1 / std::sqrt(32.0)));
  CHECK(c.max_positions == 2048);
  CHECK(c.delta.form == tensor::DeltaForm::kChannelDelta);
  CHECK(c.delta.decays() == 16);
  CHECK(c.conv_taps == 4);
  CHECK(c.shape().channels == 96);
  CHECK(c.shape().channel_unit == 16);
  CHECK(c.has_experts == std::vector<bool>{false, true, true, true, true, true});
  CHECK(c.experts_of_token == 3);
  CHECK(c.shared_mlp == 64);
  CHECK(c.routing.score == tensor::ExpertScore::kSigmoid);
  CHECK(c.routing.renormalizes);
  LinearJson dense = kimi();
  dense["num_experts"] = 0;
  dense["rope_scaling"] = {{"type", "yarn"}, {"factor", 40}, {"mscale_all_dim", 1.0}};
  CHECK(decode_linear(dense).has_experts == std::vector<bool>(6, false));
  CHECK(decode_linear(dense).attention_scale == c.attention_scale);
  dense.erase("v_head_dim");
  CHECK(decode_linear(dense).head_dim == 32);
}

TEST_CASE("families: a rank's layers of kimi_linear keep latent vectors or states") {
  const Config c = decode_linear(kimi());
  const auto parts = topology::place(c.shape(), topology::Split::kTensor, 4);
  REQUIRE(parts.has_value());
  uint32_t floats = 0;
  for (const topology::Part& part : *parts) {
    const auto shapes = layer_shapes({*find_arch(kimi()), c}, part, true);
    const uint32_t heads = part.channels.size() / 16;
    CHECK(shapes[0].state_floats == heads * (3 * 3 * 16 + 16 * 16));
    CHECK(shapes[0].kv_heads == 0);
    CHECK(shapes[3].latent_dim == 48);
    CHECK(shapes[3].state_floats == 0);
    floats += shapes[0].state_floats;
  }
  CHECK(floats == 6 * (3 * 3 * 16 + 16 * 16));
}

TEST_CASE("families: a kimi_linear that cannot be served is refused by name") {
  const auto at = [](const char* path) { return LinearJson::json_pointer(path); };
  CHECK(refuses_linear(kimi(), at("/linear_attn_config"), 3));
  CHECK(refuses_linear(kimi(), at("/linear_attn_config/kda_layers"), {0}));
  CHECK(refuses_linear(kimi(), at("/linear_attn_config/kda_layers"), {7}));
  CHECK(refuses_linear(kimi(), at("/linear_attn_config/kda_layers"), nullptr));
  CHECK(refuses_linear(kimi(), at("/linear_attn_config/full_attn_layers"), {4}));
  CHECK(refuses_linear(kimi(), at("/linear_attn_config/num_heads"), 0));
  CHECK(refuses_linear(kimi(), at("/linear_attn_config/head_dim"), 1 << 28));
  CHECK(refuses_linear(kimi(), at("/linear_attn_config/short_conv_kernel_size"), 1));
  CHECK(refuses_linear(kimi(), at("/mla_use_nope"), false));
  CHECK(refuses_linear(kimi(), at("/moe_router_activation_func"), "tanh"));
  CHECK(refuses_linear(kimi(), at("/num_experts_per_token"), "x"));
  CHECK(refuses_linear(kimi(), at("/qk_rope_head_dim"), 0));
  LinearJson json = kimi();
  json["num_expert_group"] = 2;
  CHECK(refuses_linear(json, at("/use_grouped_topk"), false));
}

TEST_CASE("families: the last of each group of bailing_hybrid's layers is latent, and the rest") {
  const Config c = decode_linear(bailing());
  CHECK(c.is_recurrent == std::vector<bool>{true, true, true, false, false, false});
  CHECK(c.latent.eps == 1e-5);
  CHECK(c.rope->interleaved);
  CHECK(c.rope->inverse_frequencies.size() == 4);
  CHECK_FALSE(c.state_rope->interleaved);
  CHECK(c.state_rope->inverse_frequencies.size() == 8);  // half of a head
  CHECK(c.delta.values() == 128);
  CHECK(c.shape().channels == 128);
  CHECK(c.shape().channel_unit == 32);
  CHECK(c.has_qk_norm);
  CHECK(c.has_expert_bias);
  CHECK(c.routing.groups == 4);
  CHECK(c.routing.leaves_groups_out);
  CHECK(c.shared_mlp == 64);
  LinearJson json = bailing();
  json.update({{"moe_shared_expert_intermediate_size", 96},
               {"score_function", "softmax"},
               {"layer_group_size", 3}});
  CHECK(decode_linear(json).shared_mlp == 96);
  CHECK(decode_linear(json).routing.score == tensor::ExpertScore::kSoftmax);
  CHECK(decode_linear(json).is_recurrent ==
        std::vector<bool>{true, true, false, true, true, false});
  json["num_experts"] = nullptr;
  CHECK(decode_linear(json).has_experts == std::vector<bool>(6, false));
}

TEST_CASE("families: a bailing_hybrid that cannot be served is refused by name") {
  const auto at = [](const char* path) { return LinearJson::json_pointer(path); };
  CHECK(refuses_linear(bailing(), at("/layer_group_size"), 0));
  CHECK(refuses_linear(bailing(), at("/group_norm_size"), 3));
  CHECK(refuses_linear(bailing(), at("/group_norm_size"), nullptr));
  CHECK(refuses_linear(bailing(), at("/score_function"), "tanh"));
  CHECK(refuses_linear(bailing(), at("/use_bias"), true));
  CHECK(refuses_linear(bailing(), at("/norm_head"), true));
  CHECK(refuses_linear(bailing(), at("/architectures"), {"BailingMoeV3ForCausalLM"}));
  CHECK(refuses_linear(bailing(), at("/head_dim"), 1 << 21));
  CHECK(refuses_linear(bailing(), at("/partial_rotary_factor"), 2.0));
  CHECK(refuses_linear(bailing(), at("/partial_rotary_factor"), 0.3));
}

}  // namespace
}  // namespace tandem::model
