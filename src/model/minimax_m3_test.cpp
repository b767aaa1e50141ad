// What MiniMax M3 reads from its configs, and what it refuses.
#include <map>

#include "model/family_test.h"

namespace tandem::model {
namespace {

Json minimax_m3() {
  Json json = base("minimax_m3_vl_text");
  json.update({{"dense_intermediate_size", 160},
               {"shared_intermediate_size", 96},
               {"num_local_experts", 8},
               {"num_experts_per_tok", 2},
               {"rotary_dim", 16},
               {"moe_layer_freq", {0, 0, 1, 1, 1, 1}},
               {"sparse_attention_config",
                {{"use_sparse_attention", true},
                 {"sparse_num_index_heads", 2},
                 {"sparse_index_dim", 24},
                 {"sparse_block_size", 64},
                 {"sparse_topk_blocks", 4},
                 {"sparse_init_block", 1},
                 {"sparse_local_block", 2},
                 {"sparse_score_type", "max"},
                 {"sparse_disable_index_value", {0, 1, 1, 1, 1, 1}},
                 {"sparse_attention_freq", {0, 1, 1, 1, 1, 1}}}}});
  return json;
}

bool refuses_sparse(const char* key, const Json& value) {
  Json json = minimax_m3();
  json["sparse_attention_config"][key] = value;
  return config_refusal(json).find(key) != std::string::npos;
}

TEST_CASE("families: minimax_m3 is dense at first, then chooses blocks and experts") {
  const Json json = minimax_m3();
  const Config c = decode(json);
  CHECK(c.mlp == 160);
  CHECK(c.expert_mlp == 96);
  CHECK(c.shared_mlp == 96);
  CHECK(c.has_experts == std::vector<bool>{false, false, true, true, true, true});
  CHECK(c.chooses_blocks == std::vector<bool>{false, true, true, true, true, true});
  CHECK(c.rope->inverse_frequencies.size() == 8);
  CHECK(c.norm_offset == 1);
  CHECK(c.routing.scale == 2);
  CHECK(c.gate == tensor::Gate::kClamped);
  CHECK(c.sparse.dim == 24);
  CHECK(c.sparse.block == 64);
  CHECK(c.sparse.top_k == 4);
  CHECK(c.sparse.first_blocks == 1);
  CHECK(c.sparse.last_blocks == 2);
  const auto parts = topology::place(c.shape(), topology::Split::kTensor, 2, {});
  const auto shapes = layer_shapes({*find_arch(json), c}, (*parts)[1], false);
  CHECK(shapes[0].page_bytes(32, 2) == uint64_t{32} * 2 * 32 * 2);
  CHECK(shapes[1].page_bytes(32, 2) == uint64_t{32} * (2 * 32 + 24) * 2 + sizeof(uint32_t) * 4);
}

TEST_CASE("families: minimax_m3's fields may lie outside, and layers have names") {
  Json json = minimax_m3();
  json.erase("sparse_attention_config");
  CHECK(decode(json).chooses_blocks.empty());
  json.update({{"index_n_heads", 2},
               {"index_head_dim", 16},
               {"index_block_size", 32},
               {"index_topk_blocks", 3},
               {"use_gemma_norm", false},
               {"n_shared_experts", 0},
               {"layer_types", std::vector<std::string>(6, "minimax_m3_sparse")},
               {"mlp_layer_types", std::vector<std::string>(6, "sparse")}});
  json["layer_types"][2] = "full_attention";
  json["mlp_layer_types"][5] = "dense";
  const Config c = decode(json);
  CHECK(c.chooses_blocks == std::vector<bool>{true, true, false, true, true, true});
  CHECK(c.has_experts == std::vector<bool>{true, true, true, true, true, false});
  CHECK(c.sparse.last_blocks == 1);
  CHECK(c.norm_offset == 0);
  CHECK(c.shared_mlp == 0);
  json["layer_types"][3] = "linear_attention";
  CHECK(config_refusal(json).find("layer_types lists \"linear_attention\"") != std::string::npos);
}

TEST_CASE("families: what would change minimax_m3's answers is refused by name") {
  for (const auto& [key, value] : std::map<std::string, Json>{{"attention_output_gate", true},
                                                              {"hidden_act", "silu"},
                                                              {"scoring_func", "softmax"},
                                                              {"qk_norm_type", "per_layer"},
                                                              {"swiglu_alpha", 1.5},
                                                              {"swiglu_limit", 8},
                                                              {"n_shared_experts", 2},
                                                              {"rotary_dim", 33},
                                                              {"moe_layer_freq", {1}}})
    CHECK_MESSAGE(refuses(minimax_m3(), key.c_str(), value), key);
  for (const auto& [key, value] : std::map<std::string, Json>{{"sparse_score_type", "lse"},
                                                              {"sparse_num_index_heads", 4},
                                                              {"sparse_local_block", 0},
                                                              {"sparse_init_block", 3},
                                                              {"sparse_index_dim", 8},
                                                              {"sparse_topk_blocks", 1 << 29},
                                                              {"sparse_disable_index_value", false},
                                                              {"sparse_attention_freq", {1, 0}}})
    CHECK_MESSAGE(refuses_sparse(key.c_str(), value), key);
}

}  // namespace
}  // namespace tandem::model
