// What a form of a client's own may not have, or may not cost.
#include <doctest/doctest.h>

#include <string>

#include "chat/testdata/harness.h"
#include "grammar/compiler.h"

namespace tandem::chat {
namespace {

/// A service that takes nothing at all.
struct Refusing : Harness {
  Error refused(const std::string& lark) {
    Request asked = Harness::request();
    asked.form = {.kind = AnswerForm::Kind::kLark, .source = lark, .field = "guided_grammar"};
    const auto accepted = service.submit(std::move(asked), sink());
    REQUIRE_FALSE(accepted);
    return accepted.error();
  }
};

TEST_CASE("answer limits: what a client's Lark may not have is a 400 by the request's own field") {
  Refusing service;
  const std::pair<std::string, const char*> cases[] = {
      {"start: <|im_end|> \"x\"", "<|im_end|>"},
      {"start: \"x\" tail\ntail: <[0-100000]>", "<[0-100000]>"},
      {"start: (\"x\"*)*", "endlessly many ways"}};
  for (const auto& [lark, words] : cases) {
    CAPTURE(lark);
    const Error error = service.refused(lark);
    CHECK(error.code == ErrorCode::kInvalid);
    CHECK(error.field == "guided_grammar");
    CHECK_MESSAGE(error.message.find(words) != std::string::npos, error.message);
  }
}

}  // namespace
}  // namespace tandem::chat
