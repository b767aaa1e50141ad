// End tokens in grammars that clients write.
#include "grammar/end_tokens.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "text/testdata/fixtures.h"

namespace tandem::grammar {
namespace {

TEST_CASE("end tokens: a grammar that has one is refused by its name, and others are not") {
  const text::Tokenizer tokenizer = text::byte_level_fixture();
  const std::vector<text::TokenId> eos = {*tokenizer.id("<|im_end|>")};
  const std::string id = std::to_string(eos[0]);
  const auto near = [&](int by) { return std::to_string(eos[0] + by); };
  for (const std::string& word :
       {std::string("<|im_end|>"), "<[" + id + "]>", "<[0-" + id + "]>", "<[1," + id + ",2]>",
        std::string("<[*]>"), std::string("<[^1-2]>")}) {
    CAPTURE(word);
    for (const std::string& lark :
         {"start: " + word + " \"x\"", "start: a\n// c\na: \"<\" | " + word}) {
      const Status checked = check_end_tokens(lark, tokenizer, eos);
      REQUIRE_FALSE(checked);
      CHECK(checked.error().code == ErrorCode::kInvalid);
      CHECK(checked.error().message.find(word) != std::string::npos);
      CHECK(checked.error().message.find("ends answers") != std::string::npos);
    }
  }
  for (const std::string& lark :
       {std::string("start: \"<|im_end|>\" /<|im_end|>/ // <|im_end|>"),
        std::string("start: <|im_start|>"), "start: <[0-" + near(-1) + "]>",
        "start: <[^" + id + "]>", std::string("start: %json {\"const\": \"<|im_end|>\"}")}) {
    CAPTURE(lark);
    CHECK(check_end_tokens(lark, tokenizer, eos));
  }
}

}  // namespace
}  // namespace tandem::grammar
