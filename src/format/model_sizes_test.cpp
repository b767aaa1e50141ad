#include "format/model_sizes.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace tandem::format {
namespace {

nlohmann::json smallest() {
  return {{"hidden_size", 64},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"intermediate_size", 96},
          {"vocab_size", 101}};
}

TEST_CASE("model sizes: what the config leaves out, or gives as null, has one default") {
  const ModelSizes expected{.hidden = 64,
                            .layers = 2,
                            .heads = 4,
                            .kv_heads = 4,
                            .head_dim = 16,
                            .mlp = 96,
                            .vocab = 101,
                            .max_positions = 32768};
  nlohmann::json config = smallest();
  CHECK(read_sizes(config).value() == expected);
  for (const char* key : {"num_key_value_heads", "head_dim", "max_position_embeddings"})
    config[key] = nullptr;
  CHECK(read_sizes(config).value() == expected);
  config["num_key_value_heads"] = 2;
  config["head_dim"] = 8;
  config["max_position_embeddings"] = 4096;
  const auto given = read_sizes(config);
  REQUIRE(given);
  CHECK(given->kv_heads == 2);
  CHECK(given->head_dim == 8);
  CHECK(given->max_positions == 4096);
}

TEST_CASE("model sizes: lfm2 names its MLP's width its own way, and adjusts it by default") {
  nlohmann::json config = smallest();
  config.erase("intermediate_size");
  config["block_ff_dim"] = 1000;
  CHECK_FALSE(read_sizes(config).has_value());
  config["model_type"] = "lfm2";
  CHECK(read_sizes(config)->mlp == 768);  // 666 to a multiple of 256
  config["block_multiple_of"] = 7;
  config["block_ffn_dim_multiplier"] = 0.5;
  CHECK(read_sizes(config)->mlp == 336);  // 333 to a multiple of 7
  config["block_auto_adjust_ff_dim"] = false;
  CHECK(read_sizes(config)->mlp == 1000);
}

TEST_CASE("model sizes: a model of experts alone names their width only") {
  nlohmann::json config = smallest();
  config.erase("intermediate_size");
  config["moe_intermediate_size"] = 24;
  CHECK(read_sizes(config)->mlp == 24);
}

TEST_CASE("model sizes: longcat_flash calls them otherwise") {
  nlohmann::json config = {{"model_type", "longcat_flash"},
                           {"hidden_size", 64},
                           {"num_layers", 3},
                           {"num_attention_heads", 4},
                           {"ffn_hidden_size", 96},
                           {"expert_ffn_hidden_size", 24},
                           {"vocab_size", 101},
                           {"num_hidden_layers", 6},
                           {"moe_intermediate_size", 1000}};
  CHECK(read_sizes(config)->layers == 3);
  CHECK(read_sizes(config)->mlp == 96);
  CHECK(read_sizes(config)->expert_mlp == 24);
  config["num_layers"] = 5000;
  CHECK(read_sizes(config).error().message.find("num_layers should be") != std::string::npos);
  config.erase("num_layers");
  CHECK(read_sizes(config).error().message == "config: num_layers is missing");
}

TEST_CASE("model sizes: heads of mimo_v2_flash differ by kind, and values from keys") {
  nlohmann::json config = smallest();
  config.update({{"model_type", "mimo_v2_flash"},
                 {"head_dim", 48},
                 {"v_head_dim", 32},
                 {"swa_num_attention_heads", 8},
                 {"swa_num_key_value_heads", 2},
                 {"swa_head_dim", 24},
                 {"swa_v_head_dim", 16}});
  CHECK(read_sizes(config)->head_dim == 48);
  CHECK(read_sizes(config)->value_dim == 32);
  CHECK(read_sizes(config)->window == HeadSizes{8, 2, 24, 16});
  for (const char* key : {"v_head_dim", "swa_v_head_dim", "swa_num_attention_heads"}) {
    nlohmann::json without = config;
    without.erase(key);
    CHECK(read_sizes(without).error().message == fmt::format("config: {} is missing", key));
    config[key] = 1 << 28;
    CHECK_FALSE(read_sizes(config).has_value());
    config[key] = 8;
  }
}

nlohmann::json gemma4() {
  nlohmann::json config = smallest();
  config.update({{"model_type", "gemma4_text"},
                 {"num_key_value_heads", 2},
                 {"head_dim", 16},
                 {"num_kv_shared_layers", 0}});
  return config;
}

TEST_CASE("model sizes: gemma4's layers that see everything have wider heads than its windows") {
  nlohmann::json config = gemma4();
  CHECK(read_sizes(config)->window == HeadSizes{4, 2, 16});
  CHECK(read_sizes(config)->head_dim == 512);
  config["global_head_dim"] = nullptr;
  CHECK(read_sizes(config)->head_dim == 16);
  config.update({{"global_head_dim", 32}, {"num_global_key_value_heads", 1}});
  CHECK(read_sizes(config)->head_dim == 32);
  CHECK(read_sizes(config)->kv_heads == 2);  // such heads are for layers whose values are keys
  config["attention_k_eq_v"] = true;
  CHECK(read_sizes(config)->kv_heads == 1);
  CHECK(read_sizes(config)->window == HeadSizes{4, 2, 16});
  CHECK(read_sizes(config)->joined_layers() == 0);
}

TEST_CASE("model sizes: the last layers of gemma4 read what the last ones of their kind keep") {
  nlohmann::json config = gemma4();
  config["num_hidden_layers"] = 6;
  config["num_kv_shared_layers"] = 3;
  CHECK(read_sizes(config).error().message.find("layer_types") != std::string::npos);
  config["layer_types"] = {"a", "a", "b", "a", "b", "b"};
  CHECK(read_sizes(config)->kv_sources == std::vector<uint32_t>{0, 1, 2, 1, 2, 2});
  CHECK(read_sizes(config)->joined_layers() == 5);
  config["layer_types"] = {"a", "a", "a", "a", "b", "a"};
  CHECK(read_sizes(config).error().message.find("layer 4") != std::string::npos);
  config["num_kv_shared_layers"] = 6;
  CHECK(read_sizes(config).error().message.find("num_kv_shared_layers") != std::string::npos);
  config.erase("num_kv_shared_layers");
  CHECK(read_sizes(config).error().message.find("num_kv_shared_layers") != std::string::npos);
}

TEST_CASE("model sizes: a field that is missing or of a wrong type is refused by name") {
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads",
                          "intermediate_size", "vocab_size"}) {
    CAPTURE(key);
    nlohmann::json config = smallest();
    config.erase(key);
    const auto without = read_sizes(config);
    REQUIRE(!without);
    CHECK(without.error() == Error{ErrorCode::kCorrupt, fmt::format("config: {} is missing", key)});
  }
  for (const char* key : {"hidden_size", "num_key_value_heads", "head_dim", "vocab_size",
                          "max_position_embeddings"}) {
    for (const nlohmann::json& value :
         {nlohmann::json("9"), nlohmann::json(-1), nlohmann::json(0), nlohmann::json(1.5),
          nlohmann::json(int64_t{1} << 40), nlohmann::json::array()}) {
      nlohmann::json config = smallest();
      config[key] = value;
      const auto spoiled = read_sizes(config);
      REQUIRE(!spoiled);
      CHECK(spoiled.error().code == ErrorCode::kCorrupt);
      CHECK(spoiled.error().message ==
            fmt::format("config: {} should be a positive integer, is {}", key, value.dump()));
    }
  }
  nlohmann::json deep = smallest();
  deep["num_hidden_layers"] = 1025;
  CHECK(!read_sizes(deep));
  for (const uint32_t heads : {65U, 1U << 30}) {  // more than hidden_size, so that none has a width
    nlohmann::json wide = smallest();
    wide["num_attention_heads"] = heads;
    REQUIRE(!read_sizes(wide));
    CHECK(read_sizes(wide).error().message.find("num_attention_heads") != std::string::npos);
    wide["head_dim"] = 1 << 30;
    CHECK(!read_sizes(wide));
  }
}

}  // namespace
}  // namespace tandem::format
