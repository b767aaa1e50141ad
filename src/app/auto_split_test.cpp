#include "app/auto_split.h"

#include <doctest/doctest.h>

#include "app/header_test.h"

namespace tandem::app {
namespace {

using nlohmann::json;

json config() {
  return json::parse(R"({"num_hidden_layers": 30, "hidden_size": 576, "num_attention_heads": 9,
                         "num_key_value_heads": 9, "intermediate_size": 1536, "vocab_size": 49152})");
}

topology::Split split(const format::Checkpoint& checkpoint, uint32_t ranks) {
  return auto_split(checkpoint, ranks, {}, topology::Link::kHost).split;
}

Header quantized(int group) {
  Header out(config(), format::Quantization{.bits = 4, .group_size = group});
  return out.put("model.layers.0.self_attn.o_proj.weight", format::Dtype::kU32, {8, 1});
}

TEST_CASE("auto split: cuts between heads only where the quantization allows it") {
  CHECK(split(Header(config(), std::nullopt), 8) == topology::Split::kTensor);
  // Groups of 128 inputs are two heads of 64: five cuts at most.
  CHECK(split(quantized(128), 4) == topology::Split::kTensor);
  CHECK(split(quantized(128), 8) == topology::Split::kPipeline);
}

TEST_CASE("auto split: KV heads given as null are as many as heads, as for the ranks") {
  json null_heads = config();
  null_heads["num_key_value_heads"] = nullptr;
  const auto chosen = [](const json& c) {
    return auto_split(Header(c, std::nullopt), 8, {}, topology::Link::kHost).reason;
  };
  CHECK(chosen(null_heads) == chosen(config()));
}

TEST_CASE("auto split: a header without sizes is left to the ranks to refuse") {
  for (const char* text : {"{}", R"({"num_attention_heads": "9", "num_hidden_layers": -1})"}) {
    CHECK(split(Header(json::parse(text), std::nullopt), 2) == topology::Split::kTensor);
  }
}

}  // namespace
}  // namespace tandem::app
