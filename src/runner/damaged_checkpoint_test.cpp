// Checkpoints whose numbers or tensors no model can be made of.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "model/random_checkpoint_test.h"
#include "runner/model_runner.h"

namespace tandem::runner {
namespace {

using model::RandomCheckpoint;
using model::RandomOptions;

constexpr float kTooMuch = std::numeric_limits<float>::infinity();

/// Why it cannot be loaded; empty when it can.
std::string refusal(std::shared_ptr<const RandomCheckpoint> checkpoint, tensor::Path path) {
  const auto loaded = ModelRunner::load(std::move(checkpoint),
                                        {.path = path, .threads = 2, .page_tokens = 4, .pages = 8});
  if (loaded) return {};
  CHECK(loaded.error().code == ErrorCode::kCorrupt);
  return loaded.error().message;
}

void check_names(const RandomOptions& o, const std::string& tensor, float value) {
  for (const tensor::Path path : {tensor::Path::kFast, tensor::Path::kPlain}) {
    const auto checkpoint = std::make_shared<RandomCheckpoint>(o);
    REQUIRE(refusal(checkpoint, path).empty());
    checkpoint->put(tensor, 7, value);
    const std::string message = refusal(checkpoint, path);
    CAPTURE(tensor);
    CAPTURE(message);
    CHECK(message.starts_with(tensor + " holds a number that is NaN or infinite"));
    CHECK(message.find("damaged") != std::string::npos);
  }
}

TEST_CASE("a weight that is NaN or infinite is refused at load with its tensor's name") {
  const RandomOptions dense{.model_type = "qwen2"};
  check_names(dense, "model.embed_tokens.weight", std::nanf(""));
  check_names(dense, "model.norm.weight", kTooMuch);
  check_names(dense, "model.layers.1.input_layernorm.weight", std::nanf(""));
  check_names(dense, "model.layers.0.self_attn.v_proj.weight", -kTooMuch);
  check_names(dense, "model.layers.0.self_attn.k_proj.bias", std::nanf(""));
  check_names(dense, "model.layers.1.mlp.down_proj.weight", std::nanf(""));
  const RandomOptions codes{.has_tied_head = false, .bits = 4};
  check_names(codes, "lm_head.scales", std::nanf(""));
  check_names(codes, "model.layers.0.self_attn.o_proj.biases", kTooMuch);
  check_names(codes, "model.layers.1.mlp.up_proj.scales", std::nanf(""));
}

TEST_CASE("an expert's weight that is not finite is refused with its tensor's name") {
  for (const int bits : {0, 4}) {
    RandomOptions o{.model_type = "qwen3_moe", .bits = bits};
    const std::string leaf = bits == 0 ? "weight" : "scales";
    check_names(o, "model.layers.0.mlp.switch_mlp.gate_proj." + leaf, std::nanf(""));
    check_names(o, "model.layers.0.mlp.gate." + leaf, std::nanf(""));
    o.stacks_experts = false;
    check_names(o, "model.layers.0.mlp.experts.3.down_proj." + leaf, kTooMuch);
  }
}

TEST_CASE("a byte that stands for no number is refused with its tensor's name") {
  using format::QuantMode;
  const auto check = [](const RandomOptions& o, const char* name, uint8_t value) {
    CAPTURE(name);
    for (const tensor::Path path : {tensor::Path::kFast, tensor::Path::kPlain}) {
      const auto checkpoint = std::make_shared<RandomCheckpoint>(o);
      REQUIRE(refusal(checkpoint, path).empty());
      checkpoint->put_byte(name, 5, value);
      CHECK(refusal(checkpoint, path).find(std::string(name) + " holds a number that is NaN") == 0);
    }
  };
  const RandomOptions mxfp4{.model_type = "gpt_oss", .bits = 4, .mode = QuantMode::kMxfp4};
  check(mxfp4, "model.layers.1.self_attn.o_proj.scales", 0xff);
  check(mxfp4, "model.layers.0.mlp.experts.down_proj.scales", 0xf7);  // 2^120, times 6 and more
  const RandomOptions nvfp4{.bits = 4, .group = 16, .mode = QuantMode::kNvfp4};
  check(nvfp4, "model.layers.1.mlp.up_proj.scales", 0x7f);
  const RandomOptions mxfp8{.bits = 8, .mode = QuantMode::kMxfp8};
  check(mxfp8, "model.layers.1.mlp.up_proj.weight", 0xff);
  check(mxfp8, "model.embed_tokens.scales", 0xff);
}

TEST_CASE("scales of another type or shape than their mode's are refused with the module's name") {
  const RandomOptions o{.bits = 4, .mode = format::QuantMode::kMxfp4};
  const std::string module = "model.layers.1.self_attn.o_proj";
  for (const tensor::Path path : {tensor::Path::kFast, tensor::Path::kPlain}) {
    auto checkpoint = std::make_shared<RandomCheckpoint>(o);
    checkpoint->retype(module + ".scales", format::Dtype::kI8);
    CHECK(refusal(checkpoint, path).find(module + ": the scales are not [64, 4] of bytes") == 0);
    checkpoint = std::make_shared<RandomCheckpoint>(o);
    checkpoint->shorten(module + ".scales", 32);
    const std::string message = refusal(checkpoint, path);
    CAPTURE(message);
    CHECK(message.find(module) == 0);
  }
}

TEST_CASE("scales of another number of groups than the config says are refused") {
  for (const tensor::Path path : {tensor::Path::kFast, tensor::Path::kPlain}) {
    const auto checkpoint = std::make_shared<RandomCheckpoint>(RandomOptions{.bits = 4});
    checkpoint->narrow("model.layers.1.self_attn.o_proj.scales", 2);
    CHECK(refusal(checkpoint, path)
              .find("model.layers.1.self_attn.o_proj: the scales or biases "
                    "are not [64, 4]") == 0);
  }
}

TEST_CASE("a vocab_size that is not the number of the table's rows is refused with both") {
  const auto refused = [](bool has_tied_head, uint32_t vocab) {
    const auto checkpoint =
        std::make_shared<RandomCheckpoint>(RandomOptions{.has_tied_head = has_tied_head});
    checkpoint->set("vocab_size", vocab);
    return refusal(checkpoint, tensor::Path::kFast);
  };
  CHECK(refused(true, 101).empty());
  CHECK(refused(false, 101).empty());
  for (const uint32_t vocab : {100U, 102U, 128U})
    CHECK(refused(true, vocab)
              .find(fmt::format("config: vocab_size is {}, but "
                                "model.embed_tokens.weight has 101 rows",
                                vocab)) == 0);
  RandomCheckpoint head({.vocab = 101, .has_tied_head = false});
  head.shorten("lm_head.weight", 96);
  const auto model = model::describe(head);
  REQUIRE_FALSE(model);
  CHECK(model.error().message.find("lm_head.weight has 96 rows") != std::string::npos);
}

}  // namespace
}  // namespace tandem::runner
