#include "app/auto_split.h"

#include <doctest/doctest.h>

namespace tandem::app {
namespace {

using nlohmann::json;

/// A checkpoint of which only the header is asked for.
class Header final : public format::Checkpoint {
 public:
  Header(json config, std::optional<format::Quantization> quantization)
      : config_(std::move(config)), quantization_(quantization) {}
  const json& config() const override { return config_; }
  std::vector<std::string> names() const override { return {}; }
  bool has(std::string_view /*name*/) const override { return false; }
  Result<format::Tensor> describe(std::string_view /*name*/) const override { return missing(); }
  Result<format::Tensor> tensor(std::string_view /*name*/,
                                std::optional<format::RowRange> /*rows*/) const override {
    return missing();
  }
  Result<std::optional<format::Quantization>> quantization(
      std::string_view /*module*/) const override {
    return quantization_;
  }
  uint64_t weight_bytes() const override { return 0; }
  std::filesystem::path directory() const override { return {}; }

 private:
  static Error missing() { return {ErrorCode::kNotFound, "only a header"}; }
  json config_;
  std::optional<format::Quantization> quantization_;
};

json config() {
  return json::parse(R"({"num_hidden_layers": 30, "hidden_size": 576, "num_attention_heads": 9,
                         "num_key_value_heads": 9, "intermediate_size": 1536, "vocab_size": 49152})");
}

topology::Split split(const format::Checkpoint& checkpoint, uint32_t ranks) {
  return auto_split(checkpoint, ranks, {}, topology::Link::kHost).split;
}

TEST_CASE("auto split: cuts between heads only where the quantization allows it") {
  CHECK(split(Header(config(), std::nullopt), 8) == topology::Split::kTensor);
  // Groups of 128 inputs are two heads of 64: five cuts at most.
  CHECK(split(Header(config(), format::Quantization{.bits = 4, .group_size = 128}), 4) ==
        topology::Split::kTensor);
  CHECK(split(Header(config(), format::Quantization{.bits = 4, .group_size = 128}), 8) ==
        topology::Split::kPipeline);
}

TEST_CASE("auto split: a header without sizes is left to the ranks to refuse") {
  for (const char* text : {"{}", R"({"num_attention_heads": "9", "num_hidden_layers": -1})"}) {
    CHECK(split(Header(json::parse(text), std::nullopt), 2) == topology::Split::kTensor);
  }
}

}  // namespace
}  // namespace tandem::app
