#include "format/text_model.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace tandem::format {
namespace {

/// A checkpoint of names alone; each tensor says its name by its number of rows.
class Names final : public Checkpoint {
 public:
  Names(nlohmann::json config, std::vector<std::string> names)
      : config_(std::move(config)), names_(std::move(names)) {}

  const nlohmann::json& config() const override { return config_; }
  std::vector<std::string> names() const override { return names_; }
  bool has(std::string_view name) const override {
    return std::ranges::find(names_, name) != names_.end();
  }
  Result<Tensor> describe(std::string_view name) const override {
    if (!has(name)) return Error{ErrorCode::kNotFound, std::string(name)};
    Tensor out;
    out.shape = {std::ranges::find(names_, name) - names_.begin()};
    return out;
  }
  Result<Tensor> tensor(std::string_view name, std::optional<RowRange>) const override {
    return describe(name);
  }
  Result<std::optional<Quantization>> quantization(std::string_view module) const override {
    const bool is_known = module == "language_model.model.layers.0.mlp.up_proj";
    return is_known ? std::optional(Quantization{.bits = 4, .group_size = 32}) : std::nullopt;
  }
  uint64_t weight_bytes() const override { return 7; }
  std::filesystem::path directory() const override { return "somewhere"; }

 private:
  nlohmann::json config_;
  std::vector<std::string> names_;
};

std::shared_ptr<const Checkpoint> opened(nlohmann::json config, std::vector<std::string> names) {
  auto out = text_model(std::make_shared<Names>(std::move(config), std::move(names)));
  REQUIRE(out.has_value());
  return *out;
}

const nlohmann::json kSeeing = {{"model_type", "gemma3"},
                                {"eos_token_id", 1},
                                {"hidden_size", 9},
                                {"quantization", {{"bits", 4}}},
                                {"text_config",
                                 {{"model_type", "gemma3_text"},
                                  {"hidden_size", 64},
                                  {"eos_token_id", nullptr},
                                  {"dtype", nullptr}}},
                                {"vision_config", {{"hidden_size", 1152}}}};

TEST_CASE("text model: hyper-parameters of the text over those around it, and no towers") {
  const auto model = opened(
      kSeeing, {"language_model.lm_head.weight", "language_model.model.layers.0.mlp.up_proj.weight",
                "multi_modal_projector.weight", "vision_tower.a.weight"});
  CHECK(model->config().at("hidden_size") == 64);
  CHECK(model->config().at("eos_token_id") == 1);
  CHECK(model->config().at("model_type") == "gemma3_text");
  CHECK(!model->config().contains("text_config"));
  CHECK(model->config().at("dtype").is_null());  // which may mean other than nothing
  CHECK(model->names() ==
        std::vector<std::string>{"lm_head.weight", "model.layers.0.mlp.up_proj.weight"});
  CHECK(model->describe("model.layers.0.mlp.up_proj.weight")->shape[0] == 1);
  CHECK(model->tensor("lm_head.weight")->shape[0] == 0);
  CHECK(model->quantization("model.layers.0.mlp.up_proj")->value().group_size == 32);
  CHECK(!model->quantization("lm_head")->has_value());
  CHECK(!model->has("vision_tower.a.weight"));
  CHECK(model->describe("model.norm.weight").error().code == ErrorCode::kNotFound);
  CHECK(model->notice().starts_with("2 tensors of this checkpoint are for images or sound"));
}

TEST_CASE("text model: transformers' names, where the text lies below the model") {
  const auto model = opened(kSeeing, {"lm_head.weight", "model.language_model.norm.weight",
                                      "model.visual.blocks.0.weight", "model.vision_tower.x"});
  CHECK(model->names() == std::vector<std::string>{"lm_head.weight", "model.norm.weight"});
}

TEST_CASE("text model: types are those of families here") {
  const auto type = [](const char* whole, const char* text) {
    nlohmann::json inner = nlohmann::json::object();
    if (text != nullptr) inner["model_type"] = text;
    return opened({{"model_type", whole}, {"text_config", inner}}, {})->config().at("model_type");
  };
  CHECK(type("mistral3", nullptr) == "llama");
  CHECK(type("mistral3", "ministral3") == "ministral3");
  CHECK(type("qwen3_vl", "qwen3_vl_text") == "qwen3");
  CHECK(type("qwen3_5_moe", "qwen3_5_moe_text") == "qwen3_5_moe");
  CHECK(type("gemma3", nullptr) == "gemma3_text");
  CHECK(type("kimi_k25", nullptr) == "kimi_k2");
  CHECK(type("minimax_m3_vl", nullptr) == "minimax_m3_vl_text");
  CHECK(type("minimax_m3_vl", "minimax_m3_vl_text") == "minimax_m3_vl_text");
}

TEST_CASE("text model: a checkpoint of text alone stays what it is; a broken one is refused") {
  const auto plain = std::make_shared<const Names>(nlohmann::json{{"model_type", "llama"}},
                                                   std::vector<std::string>{"vision_tower.a"});
  CHECK(*text_model(plain) == plain);
  CHECK(plain->notice().empty());
  const auto broken = text_model(
      std::make_shared<Names>(nlohmann::json{{"text_config", 3}}, std::vector<std::string>{}));
  REQUIRE(!broken.has_value());
  CHECK(broken.error().message.find("text_config") != std::string::npos);
}

TEST_CASE("text model: two tensors that would have one name are refused with both") {
  const auto broken = text_model(std::make_shared<Names>(
      kSeeing, std::vector<std::string>{"language_model.model.norm.weight", "model.norm.weight"}));
  REQUIRE(!broken.has_value());
  CHECK(broken.error().message.starts_with("language_model.model.norm.weight and model.norm"));
}

}  // namespace
}  // namespace tandem::format
