// Drawing under a mask of what is allowed.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "sample/sampler.h"

namespace tandem::sample::allowed {
namespace {

struct Case {
  std::vector<float> row;
  std::vector<uint32_t> mask;
  gen::Sampling sampling;
};

bool is_allowed(const std::vector<uint32_t>& mask, size_t id) {
  return id / 32 < mask.size() && (mask[id / 32] >> (id % 32) & 1U) != 0;
}

Case random_case(std::mt19937& random) {
  Case out;
  std::normal_distribution<float> logit(0, 3);
  out.row.resize(40 + random() % 300);
  for (float& x : out.row) x = logit(random);
  out.mask.resize((out.row.size() + 31) / 32);
  const auto rare = 1 + random() % 20;
  for (size_t id = 0; id < out.row.size(); ++id) {
    if (random() % rare == 0) out.mask[id / 32] |= 1U << (id % 32);
  }
  out.mask[0] |= 1;
  out.sampling.temperature = static_cast<float>(random() % 4) * 0.5F;
  if (random() % 2 == 0) out.sampling.top_p = 0.7F;
  if (random() % 3 == 0) out.sampling.top_k = 1 + static_cast<uint32_t>(random() % 9);
  if (random() % 3 == 0) out.sampling.min_p = 0.05F;
  if (random() % 4 == 0) out.sampling.xtc_probability = 1;
  if (random() % 3 == 0) out.sampling.repetition = {.value = 1.3F};
  if (random() % 3 == 0) out.sampling.logit_bias = {{.id = 3, .bias = 5}, {.id = 0, .bias = -9}};
  out.sampling.seed = random();
  return out;
}

TEST_CASE("sampler: under a mask it draws as if the other tokens had no logit") {
  std::mt19937 random(5);
  Sampler sampler;
  const std::vector<gen::TokenId> history = {1, 2, 3, 3};
  for (int round = 0; round < 500; ++round) {
    const Case at = random_case(random);
    const DrawInput masked{
        .logits = at.row, .history = history, .sampling = at.sampling, .allowed = at.mask};
    std::vector<float> rest = at.row;
    for (size_t id = 0; id < rest.size(); ++id) {
      if (!is_allowed(at.mask, id)) rest[id] = kNoLogit;
    }
    const auto token = sampler.draw(masked);
    const auto expected =
        sampler.draw({.logits = rest, .history = history, .sampling = at.sampling});
    REQUIRE(token);
    REQUIRE(expected);
    CHECK(token->id == expected->id);
    CHECK(is_allowed(at.mask, static_cast<size_t>(token->id)));
  }
}

TEST_CASE("sampler: logprobs under a mask are those of the model without it") {
  std::mt19937 random(6);
  Sampler sampler;
  for (int round = 0; round < 100; ++round) {
    Case at = random_case(random);
    DrawInput input{.logits = at.row, .history = {}, .sampling = at.sampling, .logprobs = 4};
    const auto plain = sampler.draw(input);
    input.allowed = at.mask;
    const auto masked = sampler.draw(input);
    REQUIRE(plain);
    REQUIRE(masked);
    CHECK(masked->top == plain->top);
    // Every token's own: as the plain draw of a request that can take nothing else.
    double sum = 0;
    std::vector<float> row = at.row;
    for (const gen::LogitBias& bias : at.sampling.logit_bias) {
      row[static_cast<size_t>(bias.id)] += bias.bias;
    }
    for (const float x : row) sum += std::exp(double{x});
    const double expected = double{row[static_cast<size_t>(masked->id)]} - std::log(sum);
    CHECK(double{masked->logprob} == doctest::Approx(expected).epsilon(1e-4));
  }
}

TEST_CASE("sampler: what is allowed and cannot be drawn is an error, never another token") {
  Sampler sampler;
  const std::vector<float> row = {1, kNoLogit, std::numeric_limits<float>::quiet_NaN(), 4};
  for (const uint32_t bits : {0U, 2U, 4U, 6U}) {
    const std::vector<uint32_t> mask = {bits};
    const auto token = sampler.draw(
        {.logits = row, .history = {}, .sampling = {.temperature = 1}, .allowed = mask});
    REQUIRE_FALSE(token);
    CHECK(token.error().code == ErrorCode::kInternal);
  }
  const std::vector<uint32_t> short_mask = {1};
  const std::vector<float> wide(64, 2.0F);
  CHECK(sampler.draw({.logits = wide, .history = {}, .sampling = {}, .allowed = short_mask})->id ==
        0);
}

}  // namespace
}  // namespace tandem::sample::allowed
