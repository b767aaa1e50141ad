// Bound answers of the real model, alone and split over ranks.
#include <doctest/doctest.h>

#include "instance.h"

namespace tandem::default_model {
namespace {

constexpr gen::TokenId kEnd = 2;  // <|im_end|>

gen::Request bound_request(const Reference& reference, gen::RequestId id) {
  static const char* const kSchema = R"({"type": "object", "additionalProperties": false,
    "properties": {"kind": {"enum": ["port", "market", "mine"]}, "size": {"type": "integer",
    "minimum": 1, "maximum": 99}, "open": {"type": "boolean"}},
    "required": ["kind", "size", "open"], "x-guidance": {"whitespace_flexible": false}})";
  gen::Request request;
  request.id = id;
  request.client = "test";
  request.prompt = reference.ids;
  request.max_tokens = 80;
  request.stop_ids = {kEnd};
  request.grammar = {.kind = gen::GrammarKind::kJsonSchema, .source = kSchema};
  return request;
}

std::vector<std::vector<gen::TokenId>> answers_of(const Layout& layout) {
  const std::vector<Reference> all = references();
  constexpr size_t kPrompts = 6;
  const auto generator = start(layout);
  std::vector<Answer> answers(kPrompts);
  for (size_t i = 0; i < kPrompts; ++i)
    REQUIRE(generator->submit(bound_request(all[i], i + 1), answers[i].sink()));
  std::vector<std::vector<gen::TokenId>> tokens;
  for (Answer& answer : answers) tokens.push_back(answer.wait());
  generator->stop();
  return tokens;
}

}  // namespace

TEST_CASE("default model: a bound answer ends by itself and is the same over ranks") {
  const auto alone = answers_of({.ranks = 1});
  for (const auto& tokens : alone) CHECK(tokens.back() == kEnd);
  CHECK(answers_of({.ranks = 2, .split = "tensor"}) == alone);
  CHECK(answers_of({.ranks = 2, .split = "pipeline"}) == alone);
}

}  // namespace tandem::default_model
