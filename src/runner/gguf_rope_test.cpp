// A GGUF file that carries its rope scaling as a tensor of divisors, from file to logits.
#include <array>
#include <cmath>
#include <numbers>

#include "model/random_checkpoint_test.h"
#include "runner/gguf_test.h"
#include "runner/plans_test.h"

namespace tandem::runner {
namespace {

constexpr model::RandomOptions kModel = {.layers = 2, .hidden = 64, .heads = 4, .head_dim = 16};
constexpr double kFactor = 8;
constexpr double kOriginal = 64;

/// The model with llama3 scaling in its config; neighbours are rotated, as in a GGUF file.
std::shared_ptr<model::RandomCheckpoint> configured() {
  auto made = std::make_shared<model::RandomCheckpoint>(kModel);
  made->set("rope_traditional", true);
  made->set("rope_scaling", {{"rope_type", "llama3"},
                             {"factor", kFactor},
                             {"low_freq_factor", 1.0},
                             {"high_freq_factor", 4.0},
                             {"original_max_position_embeddings", kOriginal}});
  return made;
}

/// What llama.cpp's converter stores for those parameters.
std::string stored_factors() {
  std::string out;
  for (int pair = 0; pair < 8; ++pair) {
    const double turns =
        kOriginal / (2 * std::numbers::pi * std::pow(10000.0, pair / 8.0));  // over the original
    const double smooth = std::clamp((turns - 1) / 3, 0.0, 1.0);
    const auto factor = static_cast<float>(1 / ((1 - smooth) / kFactor + smooth));
    out.append(reinterpret_cast<const char*>(&factor), sizeof factor);
  }
  return out;
}

/// The same tensors as a GGUF file.
std::shared_ptr<const format::Checkpoint> converted(const format::Checkpoint& from) {
  format::GgufWriter writer;
  writer.text("general.architecture", "llama");
  using Numbers = std::initializer_list<std::pair<const char*, uint32_t>>;
  for (const auto& [key, value] : Numbers{{"block_count", 2},
                                          {"embedding_length", 64},
                                          {"feed_forward_length", 96},
                                          {"attention.head_count", 4},
                                          {"attention.head_count_kv", 2},
                                          {"attention.key_length", 16},
                                          {"context_length", 512}}) {
    writer.number(std::string("llama.") + key, value);
  }
  write_tensors(writer, "llama", from,
                gguf_names({"token_embd.weight", "output_norm.weight"},
                           {"attn_q", "attn_k", "attn_v", "attn_output", "attn_norm", "ffn_norm",
                            "ffn_gate", "ffn_up", "ffn_down"}));
  writer.tensor("rope_freqs.weight", format::GgmlType::kF32, {8}, stored_factors());
  return reopened(writer);
}

Logits last_logits(std::shared_ptr<const format::Checkpoint> checkpoint, tensor::Path path) {
  auto runner = ModelRunner::load(std::move(checkpoint),
                                  {.path = path, .threads = 1, .page_tokens = 16, .pages = 16});
  REQUIRE(runner);
  REQUIRE((*runner)->reset(0).has_value());
  const Tokens tokens = random_tokens(150, kModel.vocab, 3);  // well beyond the original context
  const auto plans = chunked_plans(tokens, tokens.size(), 16, 16);
  REQUIRE((*runner)->issue(plans.at(0)).has_value());
  const auto result = (*runner)->complete();
  REQUIRE(result);
  return to_vector(result->logits);
}

TEST_CASE("a GGUF file's rope divisors give the logits of the llama3 parameters they stand for") {
  for (const tensor::Path path : {tensor::Path::kFast, tensor::Path::kPlain}) {
    CAPTURE(path == tensor::Path::kFast);
    const auto model = configured();
    const Logits expected = last_logits(model, path);
    CHECK(largest_difference(last_logits(converted(*model), path), expected) < 2e-4);
    model->forget("rope_scaling");  // so that the scaling can be seen to matter
    CHECK(largest_difference(last_logits(model, path), expected) > 1e-2);
  }
}

}  // namespace
}  // namespace tandem::runner
