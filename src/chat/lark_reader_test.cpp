// What Lark means by a grammar, as llguidance, which reads Lark itself, has it.
#include "chat/lark_reader.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "chat/lark_regex.h"
#include "text/bridge.h"
#include "text/testdata/fixtures.h"

namespace tandem::chat {
namespace {

namespace bridge = text::bridge;

/// Reads a grammar in both ways.
struct BothReaders {
  text::Tokenizer tokenizer = text::byte_level_fixture();
  bridge::GrammarHandle words =
      std::move(bridge::make_grammar(
                    tokenizer.handle(), 330, {static_cast<uint32_t>(*tokenizer.id("<|im_end|>"))}))
          .value();

  bool takes(bridge::GrammarKind kind, const std::string& source, const std::string& text) const {
    const auto matcher = bridge::compile(*words, kind, source);
    REQUIRE_MESSAGE(matcher.has_value(), (matcher ? "" : matcher.error().message));
    const auto ids = *tokenizer.encode(text, false);
    return bridge::consume(**matcher, {ids.begin(), ids.end()}) && *bridge::may_end(**matcher);
  }

  void check(const std::string& lark, const std::string& text, bool fits) const {
    CAPTURE(lark);
    CAPTURE(text);
    const auto pattern = regex_of_lark(lark);
    REQUIRE_MESSAGE(pattern.has_value(), (pattern ? "" : pattern.error().message));
    CAPTURE(*pattern);
    CHECK(takes(bridge::GrammarKind::kRegex, *pattern, text) == fits);
    CHECK(takes(bridge::GrammarKind::kLark, lark, text) == fits);
  }

  /// Why the first reader refuses what the other one does not take either.
  std::string refusal(const std::string& lark) const {
    CAPTURE(lark);
    CHECK_FALSE(bridge::compile(*words, bridge::GrammarKind::kLark, lark));
    const auto grammar = read_lark(lark);
    REQUIRE_FALSE(grammar);
    return grammar.error().message;
  }
};

TEST_CASE("lark reader: patterns with spaces and comments, over several lines") {
  const BothReaders both;
  const std::string commented = "start: /a b # letters/x \"!\"\n";
  both.check(commented, "ab!", true);
  both.check(commented, "a b!", false);
  both.check("start: /a\\ [b c]\\#/x\n", "a c#", true);
  both.check("start: /a\\ [b c]\\#/x\n", "a  #", false);
  const std::string lines = "start: a\n\na: /x # one\n  y+ # more (\n/x | \"-\"\n";
  both.check(lines, "xyy", true);
  both.check(lines, "-", true);
  both.check(lines, "x", false);
  const auto behind = regex_of_lark("start: /a\nb/\n  | missing\n");
  REQUIRE_FALSE(behind);
  CHECK(behind.error().message.find("line 3") != std::string::npos);
}

TEST_CASE("lark reader: what is imported is a terminal, whatever it is called here") {
  const BothReaders both;
  const std::string lark = "start: num \"x\" num\n%import common.INT -> num\n%ignore \" \"\n";
  both.check(lark, "1 x 23", true);
  both.check(lark, "1x2", true);
  both.check(lark, "1 2 x 3", false);
  CHECK(both.refusal("start: \"a\"\n%import common.INT ->\n").find("a name") != std::string::npos);
}

TEST_CASE("lark reader: ranges go over letters of any size") {
  const BothReaders both;
  const std::string lark = "start: (\"à\"..\"ü\" | \"a\"..\"b\")+\n";
  both.check(lark, "éaü", true);
  both.check(lark, "c", false);
  both.check(lark, "ÿ", false);
  for (const char* wrong : {"start: \"ab\"..\"c\"\n", "start: \"\"..\"c\"\n",
                            "start: \"éé\"..\"ü\"\n", "start: \"a\"..\"\"\n"}) {
    CHECK(both.refusal(wrong).find("one letter") != std::string::npos);
  }
  CHECK(both.refusal("start: \"a\"i..\"c\"\n").find("no flags") != std::string::npos);
  CHECK(both.refusal("start: \"a\"..\"c\"i\n").find("no flags") != std::string::npos);
}

TEST_CASE("lark reader: a brace that is a letter may be left out, and a count is not lazy") {
  const BothReaders both;
  both.check("start: /\\{a}?/\n", "{a", true);
  both.check("start: /\\{a}?/\n", "{a}", true);
  both.check("start: /[{]a{2,3}[}]?/\n", "{aa", true);
  both.check("start: /[{]a{2,3}[}]?/\n", "{a}", false);
  for (const char* lazy : {"start: /a{2}?b/\n", "start: /a{2,}?b/\n", "start: /a{2,3}?b/\n"}) {
    CAPTURE(lazy);
    const auto grammar = read_lark(lazy);
    REQUIRE_FALSE(grammar);
    CHECK(grammar.error().message.find("lazy quantifiers") != std::string::npos);
  }
}

}  // namespace
}  // namespace tandem::chat
