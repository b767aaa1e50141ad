// The real default model against mlx-lm, alone and split over ranks.
#include <doctest/doctest.h>

#include "instance.h"

namespace tandem::default_model {
namespace {

/// Tokens may part only where the reference's two best logits are closer than twice the tolerance
/// of sums in another order. The default model's logits are about ten times those of the tiny
/// models (spec: 5e-4 at 4 bits).
constexpr float kClose = 2 * 5e-3F;

gen::Request request_of(const Reference& reference, gen::RequestId id) {
  gen::Request request;
  request.id = id;
  request.client = "test";
  request.prompt = reference.ids;
  request.max_tokens = static_cast<uint32_t>(reference.tokens.size());
  request.ignore_eos = true;
  return request;
}

/// Compares up to the first place where the reference itself was undecided.
void check_tokens(const Reference& reference, const std::vector<gen::TokenId>& tokens) {
  CAPTURE(reference.prompt);
  REQUIRE(tokens.size() == reference.tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    CAPTURE(i);
    if (tokens[i] == reference.tokens[i]) continue;
    CHECK_MESSAGE(reference.gaps[i] <= kClose, "token " << tokens[i] << " instead of "
                                                        << reference.tokens[i] << ", gap "
                                                        << reference.gaps[i]);
    return;
  }
}

void check_layout(const Layout& layout, size_t prompts = 20, uint32_t tokens = 64) {
  CAPTURE(layout.ranks);
  CAPTURE(layout.split);
  std::vector<Reference> all = references();
  REQUIRE(all.size() == 20);
  all.resize(prompts);
  for (Reference& reference : all) reference.tokens.resize(tokens);
  std::vector<Answer> answers(all.size());
  const auto generator = start(layout);
  for (size_t i = 0; i < all.size(); ++i)
    REQUIRE(generator->submit(request_of(all[i], i + 1), answers[i].sink()));
  for (size_t i = 0; i < all.size(); ++i) check_tokens(all[i], answers[i].wait());
  generator->stop();
}

}  // namespace

TEST_CASE("default model: one rank answers as mlx-lm does") { check_layout({.ranks = 1}); }

TEST_CASE("default model: a tensor split answers as one rank does") {
  for (const uint32_t ranks : {2U, 3U, 4U}) check_layout({.ranks = ranks, .split = "tensor"});
}

TEST_CASE("default model: a pipeline answers as one rank does") {
  for (const uint32_t ranks : {2U, 3U, 4U}) check_layout({.ranks = ranks, .split = "pipeline"});
}

TEST_CASE("default model: ranks that meet over TCP answer the same") {
  check_layout({.ranks = 2, .split = "tensor", .comm = "tcp"});
}

TEST_CASE("default model: ranks that meet over MLX's ring answer the same") {
  check_layout({.ranks = 2, .split = "tensor", .comm = "ring"}, 5, 16);
}

TEST_CASE("default model: ranks that mpirun started answer the same" * doctest::skip(!has_mpi())) {
  check_layout({.ranks = 2, .split = "tensor", .comm = "mpi"}, 5, 16);
}

}  // namespace tandem::default_model
