// What families read from their configs, and what they refuse.
#include <doctest/doctest.h>

#include "model/family_test.h"

namespace tandem::model {
namespace {

TEST_CASE("families: an unknown one is refused with the nearest that is served") {
  const auto unknown = find_arch(Json{{"model_type", "gemma3"}});
  REQUIRE(!unknown.has_value());
  CHECK(unknown.error().code == ErrorCode::kUnsupported);
  CHECK(unknown.error().message.find("nearest family is gemma3_text") != std::string::npos);
  CHECK(find_arch(Json::object()).error().message.find("(none)") != std::string::npos);
}

TEST_CASE("families: gpt-oss has a window in every other layer, and yarn between broken pairs") {
  Json json = base("gpt_oss");
  json.update({{"num_local_experts", 8}, {"num_experts_per_tok", 3}, {"swiglu_limit", 7.0}});
  const Config plain = decode(json);
  CHECK(plain.windows == std::vector<uint32_t>{128, 0, 128, 0, 128, 0});
  CHECK(plain.expert_mlp == 96);
  CHECK(plain.routing.renormalizes);
  CHECK(plain.rope->inverse_frequencies.back() == doctest::Approx(std::pow(150000, -30.0 / 32)));
  json["rope_scaling"] = {{"rope_type", "yarn"},
                          {"factor", 32.0},
                          {"original_max_position_embeddings", 4096},
                          {"truncate", false}};
  // Between pairs 4.05 and 8.70 of 16, 6 lies 0.4199 of the way: 150000^(-12 / 32) (1 -
  // 0.4199 + 0.4199 / 32).
  CHECK(decode(json).rope->inverse_frequencies[6] == doctest::Approx(0.00679496).epsilon(1e-3));
  json["rope_scaling"]["truncate"] = true;  // 4 and 9
  CHECK(decode(json).rope->inverse_frequencies[6] == doctest::Approx(0.00701571).epsilon(1e-3));
  CHECK(refuses(json, "swiglu_limit", 8.0));
  CHECK(refuses(json, "num_experts_per_tok", 9));
  CHECK(refuses(json, "num_local_experts", nullptr));
}

TEST_CASE("families: gemma3 sees windows in five of six layers, with a rope of their own") {
  Json json = base("gemma3_text");
  const Config plain = decode(json);
  CHECK(plain.windows == std::vector<uint32_t>{512, 512, 512, 512, 512, 0});
  CHECK(plain.embed_scale == 8);
  json.update({{"sliding_window", 20}, {"sliding_window_pattern", 2}});
  CHECK(decode(json).windows == std::vector<uint32_t>{20, 0, 20, 0, 20, 0});
  // The slowest pair turns by base^(-30 / 32).
  CHECK(plain.rope->inverse_frequencies.back() == doctest::Approx(std::pow(1e6, -30.0 / 32)));
  CHECK(plain.window_rope->inverse_frequencies.back() ==
        doctest::Approx(std::pow(1e4, -30.0 / 32)));
  json["rope_parameters"] = {{"full_attention", {{"rope_theta", 1e5}}},
                             {"sliding_attention", {{"rope_theta", 1e3}}}};
  const Config newer = decode(json);
  CHECK(newer.rope->inverse_frequencies.back() == doctest::Approx(std::pow(1e5, -30.0 / 32)));
  CHECK(newer.window_rope->inverse_frequencies.back() ==
        doctest::Approx(std::pow(1e3, -30.0 / 32)));
  CHECK(refuses(json, "sliding_window_pattern", 0));
  CHECK(refuses(json, "query_pre_attn_scalar", -1));
}

TEST_CASE("families: the embedding scale of gemma3 has the reference's 8 bits") {
  Json json = base("gemma3_text");
  json["hidden_size"] = 1152;  // its root is 33.94
  CHECK(decode(json).embed_scale == 34);
}

TEST_CASE("families: gemma2's first layer and every other one see its window, if it has one") {
  Json json = base("gemma2");
  CHECK(decode(json).windows == std::vector<uint32_t>(6, 0));
  json["sliding_window"] = 4096;
  CHECK(decode(json).windows == std::vector<uint32_t>{4096, 0, 4096, 0, 4096, 0});
  CHECK(decode(json).logit_softcap == 30);
  CHECK(refuses(json, "attn_logit_softcapping", "x"));
  CHECK(refuses(json, "final_logit_softcapping", -1));
}

Json gemma4() {
  Json json = base("gemma4_text");
  json.update({{"num_kv_shared_layers", 0},
               {"hidden_size_per_layer_input", 0},
               {"global_head_dim", 64},
               {"sliding_window_pattern", 3}});
  return json;
}

TEST_CASE("families: gemma4 turns a quarter of wide heads, and all of those that see a window") {
  const Config c = decode(gemma4());
  CHECK(c.windows == std::vector<uint32_t>{512, 512, 0, 512, 512, 0});
  CHECK(c.head_dim == 64);
  CHECK(c.window_heads == topology::HeadShape{4, 2, 32});
  REQUIRE(c.rope->inverse_frequencies.size() == 32);
  CHECK(c.rope->inverse_frequencies[7] == doctest::Approx(std::pow(1e6, -14.0 / 64)));
  CHECK(c.rope->inverse_frequencies[8] == 0);
  REQUIRE(c.window_rope->inverse_frequencies.size() == 16);
  CHECK(c.window_rope->inverse_frequencies[15] == doctest::Approx(std::pow(1e4, -30.0 / 32)));
  CHECK(c.logit_softcap == 30);
  Json json = gemma4();
  json["final_logit_softcapping"] = nullptr;
  CHECK(decode(json).logit_softcap == 0);
  CHECK(refuses(json, "hidden_activation", "silu"));
  CHECK(refuses(json, "use_bidirectional_attention", "all"));
  CHECK_FALSE(refuses(json, "use_bidirectional_attention", "vision"));
  CHECK(refuses(json, "rope_parameters", 1));
  json["num_kv_shared_layers"] = nullptr;
  CHECK(config_refusal(json).find("num_kv_shared_layers") != std::string::npos);
}

TEST_CASE(
    "families: gemma4 may have experts beside its MLPs, weighed by a softmax of those chosen") {
  Json json = gemma4();
  json.update({{"enable_moe_block", true}, {"num_experts", 8}, {"top_k_experts", 3}});
  CHECK(config_refusal(json).find("moe_intermediate_size") != std::string::npos);
  json["moe_intermediate_size"] = 32;
  const Config c = decode(json);
  CHECK(c.experts == 8);
  CHECK(c.experts_of_token == 3);
  CHECK(c.expert_mlp == 32);
  CHECK(c.routing.score == tensor::ExpertScore::kSoftmax);
  CHECK(c.routing.renormalizes);
  CHECK(refuses(json, "top_k_experts", 9));
}

TEST_CASE("families: the last layers of gemma4 read others' keys, and have wider MLPs") {
  Json json = gemma4();
  const std::string window = "sliding_attention", all = "full_attention";
  json.update({{"num_kv_shared_layers", 2},
               {"hidden_size_per_layer_input", 16},
               {"vocab_size_per_layer_input", 100},
               {"layer_types", {window, all, window, all, window, all}}});
  const Config c = decode(json);
  CHECK(c.kv_sources == std::vector<uint32_t>{0, 1, 2, 3, 2, 3});
  CHECK(c.shape().joined_layers == 4);
  CHECK(c.wide_mlps_from == 4);
  CHECK(c.layer_inputs == 16);
  CHECK(refuses(json, "vocab_size_per_layer_input", 99));
  json["use_double_wide_mlp"] = false;
  CHECK(decode(json).wide_mlps_from == 0);
}

Json glm() {
  Json json = base("glm4_moe");
  json.update({{"n_routed_experts", 8},
               {"n_shared_experts", 2},
               {"num_experts_per_tok", 3},
               {"moe_intermediate_size", 32},
               {"first_k_dense_replace", 2},
               {"n_group", 4},
               {"topk_group", 2},
               {"routed_scaling_factor", 2.5}});
  return json;
}

TEST_CASE("families: glm4_moe's experts come after its dense layers, in groups, with shared ones") {
  const Config c = decode(glm());
  CHECK(c.has_experts == std::vector<bool>{false, false, true, true, true, true});
  CHECK(c.shared_mlp == 64);
  CHECK(c.routing.score == tensor::ExpertScore::kSigmoid);
  CHECK(c.routing.groups == 4);
  CHECK(c.routing.top_groups == 2);
  CHECK(c.routing.scale == 2.5F);
  CHECK(refuses(glm(), "num_experts_per_tok", 9));
  CHECK(refuses(glm(), "topk_method", "greedy"));
  CHECK(refuses(glm(), "n_shared_experts", 1 << 30));
  CHECK(refuses(glm(), "routed_scaling_factor", 0));
  for (const uint32_t groups : {3U, 8U}) {
    Json json = glm();
    json["n_group"] = groups;
    CHECK(config_refusal(json).find("groups") != std::string::npos);
  }
}

Json deepseek() {
  Json json = glm();
  json.update({{"model_type", "deepseek_v3"},
               {"kv_lora_rank", 48},
               {"q_lora_rank", 40},
               {"qk_nope_head_dim", 24},
               {"qk_rope_head_dim", 8},
               {"v_head_dim", 16}});
  return json;
}

TEST_CASE("families: deepseek_v3 keeps one vector and one rotated key of a token, on every rank") {
  const Config c = decode(deepseek());
  CHECK(c.latent.key() == 56);
  CHECK(c.head_dim == 16);
  CHECK(c.rope->inverse_frequencies.size() == 4);
  CHECK(c.rope->interleaved);
  CHECK(c.attention_scale == doctest::Approx(1 / std::sqrt(32.0)));
  const auto parts = topology::place(c.shape(), topology::Split::kTensor, 6);
  REQUIRE(parts.has_value());
  for (const topology::Part& part : *parts)
    for (const kv::LayerShape& layer : layer_shapes({*find_arch(deepseek()), c}, part, true)) {
      CHECK(layer.kv_heads == (part.heads.empty() ? 0U : 1U));
      CHECK(layer.head_dim == 56);
      CHECK(layer.latent_dim == 48);
      CHECK(layer.page_bytes(32, 2) == uint64_t{32} * 56 * 2 * layer.kv_heads);
    }
}

TEST_CASE("families: latent attention scales scores by yarn's magnitude, squared") {
  Json json = deepseek();
  json["rope_scaling"] = {{"type", "yarn"},
                          {"factor", 40},
                          {"mscale", 1.0},
                          {"mscale_all_dim", 1.0},
                          {"original_max_position_embeddings", 4096}};
  const double magnitude = 0.1 * std::log(40.0) + 1;
  CHECK(decode(json).attention_scale == doctest::Approx(magnitude * magnitude / std::sqrt(32.0)));
  CHECK(decode(json).rope->scale == 1);
  json["rope_scaling"]["mscale_all_dim"] = 0;
  CHECK(decode(json).attention_scale == doctest::Approx(1 / std::sqrt(32.0)));
}

TEST_CASE("families: a config of latent attention that cannot be served is refused by name") {
  for (const char* key : {"kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                          "v_head_dim", "moe_layer_freq"}) {
    CAPTURE(key);
    CHECK(refuses(deepseek(), key, 0));
    CHECK(refuses(deepseek(), key, "x"));
  }
  CHECK(refuses(deepseek(), "kv_lora_rank", 1 << 29));
  CHECK(config_refusal([] {
          Json json = deepseek();
          json["qk_rope_head_dim"] = 7;
          return json;
        }())
            .find("even") != std::string::npos);
  CHECK(refuses(deepseek(), "topk_method", "greedy"));
  CHECK(refuses(deepseek(), "scoring_func", "softmax"));
  Json json = deepseek();
  json["q_lora_rank"] = nullptr;
  CHECK(decode(json).latent.query_rank == 0);
  json["moe_layer_freq"] = 2;
  CHECK(decode(json).has_experts == std::vector<bool>{false, false, true, false, true, false});
}

TEST_CASE("families: relatives of deepseek_v3 choose experts in their own ways") {
  Json v2 = deepseek();
  v2.update({{"model_type", "deepseek_v2"}, {"topk_method", "group_limited_greedy"}});
  const tensor::ExpertRouting best = decode(v2).routing;
  CHECK(best.score == tensor::ExpertScore::kSoftmax);
  CHECK(best.groups == 4);
  CHECK(best.weighs_groups_by_best);
  CHECK(best.scale == 2.5F);
  v2.update({{"topk_method", "greedy"}, {"norm_topk_prob", true}});
  const tensor::ExpertRouting all = decode(v2).routing;
  CHECK(all.groups == 1);
  CHECK(all.renormalizes);
  CHECK(all.scale == 1);
  CHECK(refuses(v2, "topk_method", "noaux_tc"));
  CHECK(refuses(v2, "scoring_func", "sigmoid"));

  Json lite = deepseek();
  lite["model_type"] = "glm4_moe_lite";
  CHECK(decode(lite).latent.eps == 1e-6);
  lite["rms_norm_eps"] = 1e-5;
  CHECK(decode(lite).latent.eps == 1e-5);

  Json mistral = deepseek();
  mistral["model_type"] = "mistral4";
  CHECK(config_refusal(mistral).find("rope_parameters") != std::string::npos);
  mistral["rope_parameters"] = {
      {"rope_theta", 1e6}, {"original_max_position_embeddings", 16}, {"llama_4_scaling_beta", 0.5}};
  CHECK(decode(mistral).routing.score == tensor::ExpertScore::kSoftmax);
  CHECK(decode(mistral).routing.renormalizes);
  CHECK(decode(mistral).query_scale.context == 16);
  mistral["rope_interleave"] = false;
  CHECK(!decode(mistral).rope->interleaved);
}

TEST_CASE("families: deepseek_v32 and glm_moe_dsa keep keys by which others are chosen") {
  for (const char* type : {"deepseek_v32", "glm_moe_dsa"}) {
    Json json = deepseek();
    json.update(
        {{"model_type", type}, {"index_n_heads", 4}, {"index_head_dim", 16}, {"index_topk", 32}});
    const Config c = decode(json);
    CHECK(c.choice_rope->interleaved == (type == std::string("glm_moe_dsa")));
    topology::Part part;
    part.layers = part.heads = {0, 1};
    CHECK(layer_shapes({*find_arch(json), c}, part, true)[0].page_bytes(32, 2) ==
          uint64_t{32} * (56 + 16) * 2);
    for (const char* key : {"index_n_heads", "index_head_dim", "index_topk"})
      for (const int value : {0, 1 << 29}) CHECK(refuses(json, key, value));
    CHECK(refuses(json, "index_head_dim", 7));
    CHECK(refuses(json, "q_lora_rank", nullptr));
  }
}

TEST_CASE("families: layers for predicting several tokens are counted, and are not layers") {
  Json json = glm();
  json["num_nextn_predict_layers"] = 1;
  CHECK(decode(json).layers == 6);
  CHECK(decode(json).extra_layers == 1);
  CHECK(refuses(json, "num_nextn_predict_layers", 1 << 30));
  CHECK(refuses(json, "num_nextn_predict_layers", -1));
}

TEST_CASE("families: longrope takes its long factors and stretches what it rotates") {
  Json json = base("phi3");
  std::vector<double> factors(16, 2.0);
  json["original_max_position_embeddings"] = 1024;
  json["rope_scaling"] = {
      {"type", "longrope"}, {"long_factor", factors}, {"short_factor", factors}};
  const Config c = decode(json);
  CHECK(c.rope->inverse_frequencies.front() == 0.5F);
  CHECK(double{c.rope->scale} == doctest::Approx(std::sqrt(1 + std::log(4.0) / std::log(1024.0))));
  json["rope_scaling"]["long_factor"] = {1, 2, 3};
  CHECK(config_refusal(json).find("16 numbers in long_factor") != std::string::npos);
  json["rope_scaling"]["long_factor"] = factors;
  CHECK(refuses(json, "original_max_position_embeddings", 1));
}

TEST_CASE("families: ministral3's queries grow with every first context that lies behind them") {
  Json json = base("ministral3");
  CHECK(config_refusal(json).find("rope_parameters") != std::string::npos);
  json["rope_parameters"] = {{"rope_theta", 1e6}, {"original_max_position_embeddings", 16}};
  CHECK(config_refusal(json).find("llama_4_scaling_beta") != std::string::npos);
  json["rope_parameters"]["llama_4_scaling_beta"] = 0.5;
  const tensor::QueryScale scale = decode(json).query_scale;
  CHECK(scale.at(15) == 1);
  CHECK(double{scale.at(16)} == doctest::Approx(1 + 0.5 * std::log(2.0)));
  CHECK(scale.at(31) == scale.at(16));
}

TEST_CASE("families: a rope that is not finite is refused, not served") {
  Json json = base("llama");
  json["rope_scaling"] = {{"rope_type", "yarn"},
                          {"factor", 4},
                          {"beta_fast", 0},
                          {"original_max_position_embeddings", 64}};
  CHECK(config_refusal(json).find("no finite numbers") != std::string::npos);
}

TEST_CASE("families: lfm2's attention sees everything, whatever else its config says") {
  Json json = base("lfm2");
  json.update({{"norm_eps", 1e-5},
               {"conv_L_cache", 3},
               {"full_attn_idxs", {2}},
               {"use_sliding_window", true},
               {"sliding_window", 16}});
  CHECK(decode(json).windows == std::vector<uint32_t>(6, 0));
}

TEST_CASE("families: smollm3 has layers without a rope") {
  Json json = base("smollm3");
  CHECK(decode(json).has_rope == std::vector<bool>{true, true, true, false, true, true});
  json["no_rope_layers"] = {1, 0, 1, 0, 1, 0};
  CHECK(decode(json).has_rope == std::vector<bool>{true, false, true, false, true, false});
  CHECK(refuses(json, "no_rope_layers", {1, 0}));
  CHECK(refuses(json, "no_rope_layers", {1, 0, "x", 0, 1, 0}));
}

TEST_CASE("families: minimax turns part of a head, and refuses layers of linear attention") {
  Json json = base("minimax");
  json.update({{"num_local_experts", 8}, {"num_experts_per_tok", 2}, {"rotary_dim", 16}});
  const Config c = decode(json);
  CHECK(c.rope->inverse_frequencies.size() == 8);
  CHECK(c.has_qk_norm);
  CHECK(c.expert_mlp == 96);
  CHECK(c.routing.score == tensor::ExpertScore::kSigmoid);
  CHECK(refuses(json, "rotary_dim", 33));
  CHECK(refuses(json, "num_experts_per_tok", 9));
  CHECK(refuses(json, "scoring_func", "softmax"));
  CHECK(refuses(json, "shared_intermediate_size", 64));
  CHECK(refuses(json, "attn_type_list", {1, 0, 1, 1, 1, 1}));
  CHECK_FALSE(refuses(json, "attn_type_list", {1, 1, 1, 1, 1, 1}));
}

TEST_CASE("families: lfm2_moe's experts come after its dense layers, with a bias if it has one") {
  Json json = base("lfm2_moe");
  json.update({{"norm_eps", 1e-5},
               {"conv_L_cache", 3},
               {"full_attn_idxs", {2}},
               {"num_dense_layers", 2},
               {"num_experts", 8},
               {"num_experts_per_tok", 2},
               {"moe_intermediate_size", 32},
               {"routed_scaling_factor", 1.5}});
  const Config c = decode(json);
  CHECK(c.has_experts == std::vector<bool>{false, false, true, true, true, true});
  CHECK(c.mlp == 96);
  CHECK(c.has_expert_bias);
  CHECK(c.routing.renormalizes);
  CHECK(c.routing.scale == 1.5F);
  json["use_expert_bias"] = false;
  CHECK_FALSE(decode(json).has_expert_bias);
  CHECK(refuses(json, "num_experts_per_tok", 9));
  CHECK(refuses(json, "norm_topk_prob", 1));
}

TEST_CASE("families: exaone_moe has a rope where it sees a window, or everywhere") {
  Json json = base("exaone_moe");
  json.update({{"num_experts", 8},
               {"num_shared_experts", 1},
               {"num_experts_per_tok", 2},
               {"moe_intermediate_size", 32},
               {"first_k_dense_replace", 1}});
  CHECK(decode(json).has_rope.empty());
  CHECK(decode(json).has_experts == std::vector<bool>{false, true, true, true, true, true});
  CHECK(decode(json).shared_mlp == 32);
  CHECK(decode(json).routing.scale == 2.5F);
  json["is_moe_layer"] = {true, false, true, false, true, false};
  CHECK(decode(json).has_experts == std::vector<bool>{true, false, true, false, true, false});
  const std::string window = "sliding_attention", full = "full_attention";
  json.update({{"sliding_window", 8}, {"layer_types", {window, full, window, full, window, full}}});
  CHECK(decode(json).has_rope == std::vector<bool>{true, false, true, false, true, false});
  CHECK(refuses(json, "is_moe_layer", {true}));
  CHECK(refuses(json, "is_moe_layer", {1, 0, 1, 0, 1, 0}));
}

Json delta(const char* model_type) {
  Json json = base(model_type);
  json.update({{"linear_num_key_heads", 2},
               {"linear_num_value_heads", 6},
               {"linear_key_head_dim", 16},
               {"linear_value_head_dim", 32},
               {"linear_conv_kernel_dim", 4}});
  return json;
}

TEST_CASE("families: every fourth layer of qwen3_next attends, or those that its config names") {
  Json json = delta("qwen3_next");
  CHECK(decode(json).is_recurrent == std::vector<bool>{true, true, true, false, true, true});
  json["full_attention_interval"] = 2;
  const Config c = decode(json);
  CHECK(c.is_recurrent == std::vector<bool>{true, false, true, false, true, false});
  CHECK(c.shape().channels == 192);
  CHECK(c.shape().channel_unit == 96);
  CHECK(c.conv_taps == 4);
  json["layer_types"] = std::vector<std::string>(6, "linear_attention");
  json["layer_types"][0] = "full_attention";
  CHECK(decode(json).is_recurrent == std::vector<bool>{false, true, true, true, true, true});
  CHECK(refuses(json, "layer_types", {"full_attention"}));
  json["layer_types"][1] = "conv";
  CHECK(config_refusal(json).find("conv") != std::string::npos);
}

TEST_CASE("families: heads of linear attention that do not fit are refused") {
  const Json json = delta("qwen3_5");
  CHECK(config_refusal(json).empty());
  CHECK(refuses(json, "linear_num_value_heads", 5));
  CHECK(refuses(json, "linear_num_key_heads", 0));
  CHECK(refuses(json, "linear_value_head_dim", 1 << 29));
  CHECK(refuses(json, "linear_conv_kernel_dim", 1));
  CHECK(refuses(json, "attn_output_gate", false));
}

TEST_CASE("families: qwen3_5 turns a quarter of each head, and its experts are renormalised") {
  Json json = delta("qwen3_5_moe");
  CHECK(decode(json).rope->inverse_frequencies.size() == 4);
  CHECK(decode(json).has_experts == std::vector<bool>(6, false));
  json["rope_parameters"] = {{"rope_type", "mrope"},
                             {"rope_theta", 1e7},
                             {"partial_rotary_factor", 0.5},
                             {"mrope_section", {2, 1, 1}}};
  CHECK(decode(json).rope->inverse_frequencies.size() == 8);
  json.erase("intermediate_size");
  json.update({{"num_experts", 8}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 32}});
  CHECK(config_refusal(json).find("shared_expert_intermediate_size") != std::string::npos);
  json["shared_expert_intermediate_size"] = 64;
  CHECK(decode(json).shared_mlp == 64);
  CHECK(decode(json).routing.renormalizes);
}

Json step() {
  Json json = base("step3p5");
  const std::string window = "sliding_attention", all = "full_attention";
  json.erase("num_key_value_heads");
  json.update(
      {{"num_attention_groups", 2},
       {"attention_other_setting", {{"num_attention_heads", 6}, {"num_attention_groups", 3}}},
       {"layer_types", {all, window, window, all, window, window, all}},
       {"rope_theta", {1e6, 1e4, 1e4, 1e6, 1e4, 1e4, 5}},
       {"partial_rotary_factors", {0.5, 1, 1, 0.5, 1, 1, 7}},
       {"moe_num_experts", 8},
       {"moe_top_k", 2},
       {"moe_intermediate_size", 32},
       {"share_expert_dim", 64},
       {"moe_layers_enum", "2,3,5,6"},
       {"swiglu_limits", {0, 0, 0, 7, nullptr}},
       {"swiglu_limits_shared", {0, 16}}});
  return json;
}

TEST_CASE("families: step3p5's windows have heads and a rope of their own") {
  const Config c = decode(step());
  CHECK(c.kv_heads == 2);
  CHECK(c.window_heads == topology::HeadShape{6, 3, 32});
  CHECK(c.windows == std::vector<uint32_t>{0, 512, 512, 0, 512, 512});
  CHECK(c.rope->inverse_frequencies.size() == 8);
  CHECK(c.rope->inverse_frequencies[7] == doctest::Approx(std::pow(1e6, -14.0 / 16)));
  CHECK(c.window_rope->inverse_frequencies.size() == 16);
  CHECK(c.has_experts == std::vector<bool>{false, false, true, true, false, true});
  CHECK(c.expert_limits == std::vector<float>{0, 0, 0, 7, 0, 0});
  CHECK(c.mlp_limits == std::vector<float>{0, 16, 0, 0, 0, 0});
  CHECK(c.routing.scale == 3);
  CHECK(refuses(step(), "rope_theta", {1, 2, 3, 4, 5, 6}));
  CHECK(refuses(step(), "partial_rotary_factors", {1, 1}));
  CHECK(refuses(step(), "layer_types", nullptr));
  CHECK(refuses(step(), "moe_layers_enum", "2,x"));
  CHECK(refuses(step(), "swiglu_limits", {"a"}));
  CHECK(refuses(step(), "moe_router_activation", "softmax"));
  CHECK(refuses(step(), "attention_other_setting", 3));
}

TEST_CASE("families: a rope that step3p5 gives some kinds of layers alone is not the others'") {
  Json json = step();
  json["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}};
  json["yarn_only_types"] = {"full_attention"};
  CHECK(decode(json).rope->inverse_frequencies[0] == 0.5F);
  CHECK(decode(json).window_rope->inverse_frequencies[0] == 1);
  json["yarn_only_types"] = Json::array();
  CHECK(decode(json).window_rope->inverse_frequencies[0] == 0.5F);
}

TEST_CASE("families: mixtral and qwen2_moe say their experts in their own words") {
  Json mixtral = base("mixtral");
  mixtral.update({{"num_local_experts", 8}, {"num_experts_per_tok", 2}});
  CHECK(decode(mixtral).expert_mlp == 96);
  CHECK(decode(mixtral).routing.renormalizes);
  CHECK(refuses(mixtral, "num_local_experts", 0));
  CHECK(refuses(mixtral, "num_experts_per_tok", 9));
  Json qwen = base("qwen2_moe");
  qwen.update({{"num_experts", 8}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 32}});
  CHECK(config_refusal(qwen).find("shared_expert_intermediate_size") != std::string::npos);
  qwen["shared_expert_intermediate_size"] = 64;
  CHECK(decode(qwen).shared_mlp == 64);
}

}  // namespace
}  // namespace tandem::model
