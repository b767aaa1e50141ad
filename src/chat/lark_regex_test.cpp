// Grammars of custom tools: what is taken for one, and that the expression of it matches its texts.
#include "chat/lark_regex.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "dialect/grammar.h"
#include "dialect/joined_test.h"
#include "text/bridge.h"
#include "text/testdata/fixtures.h"

namespace tandem::chat {
namespace {

/// As Codex sends it.
constexpr const char* kPatch = R"x(start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | delete_hunk | update_hunk
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change_move? change?

filename: /(.+)/
add_line: "+" /(.*)/ LF -> line

change_move: "*** Move to: " filename LF
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF

%import common.LF
)x";

constexpr const char* kGoodPatch =
    "*** Begin Patch\n*** Update File: a/b.c\n@@ f()\n-say \"hi\" \\ <b>\n+</parameter>\n c\n"
    "*** Add File: d\n+x\n*** End Patch\n";

/// Takes texts under a grammar, letter by letter.
struct TextTaker {
  text::Tokenizer tokenizer = text::byte_level_fixture();
  uint32_t end = static_cast<uint32_t>(*tokenizer.id("<|im_end|>"));
  text::bridge::GrammarHandle grammar =
      std::move(text::bridge::make_grammar(tokenizer.handle(), 330, {end})).value();

  bool takes(text::bridge::GrammarKind kind, const std::string& source, const std::string& text) {
    const auto matcher = text::bridge::compile(*grammar, kind, source);
    REQUIRE_MESSAGE(matcher.has_value(), (matcher ? "" : matcher.error().message));
    const auto ids = *tokenizer.encode(text, false);
    return text::bridge::consume(**matcher, {ids.begin(), ids.end()}) &&
           *text::bridge::may_end(**matcher);
  }

  bool matches(const std::string& lark, const std::string& text) {
    const auto pattern = regex_of_lark(lark);
    REQUIRE_MESSAGE(pattern.has_value(), (pattern ? "" : pattern.error().message));
    return takes(text::bridge::GrammarKind::kRegex, *pattern, text);
  }
};

TEST_CASE("lark: the expression matches what the grammar does") {
  TextTaker taker;
  CHECK(taker.matches(kPatch, kGoodPatch));
  CHECK(taker.matches(kPatch, "*** Begin Patch\n*** Delete File: a\n*** End Patch"));
  CHECK_FALSE(taker.matches(kPatch, "*** Begin Patch\n*** End Patch"));
  CHECK_FALSE(taker.matches(kPatch, "*** Begin Patch\n*** Add File: a\nx\n*** End Patch"));
  const std::string sum =
      "// sums\nstart: sum\n?sum: sum (\"+\" | \"-\") NUM | NUM\nNUM.2: DIGIT~1..3\n"
      "%import common (DIGIT, WS)\n%ignore WS\n";
  CHECK(taker.matches(sum, "1 + 23-4"));
  CHECK(taker.matches(sum, " 1"));
  CHECK_FALSE(taker.matches(sum, "1 2"));
  CHECK_FALSE(taker.matches(sum, "1234"));
  const std::string list =
      "start: [\"a\"..\"c\"] (\n  \"X\"i\n  | /[.]{2}/s\n)+ tail\ntail: \"\\n\" tail | \"!\"\n";
  CHECK(taker.matches(list, "bxX..\n\n!"));
  CHECK(taker.matches(list, "x!"));
  CHECK_FALSE(taker.matches(list, "dx!"));
  CHECK_FALSE(taker.matches(list, "x\n"));
}

TEST_CASE("lark regex: rules and groups that together go too deep are refused") {
  std::string source = "start: a0\n";
  for (int i = 0; i < 250; ++i) {
    source += fmt::format("a{}: {}a{}{}\n", i, std::string(60, '['), i + 1, std::string(60, ']'));
  }
  const auto pattern = regex_of_lark(source + "a250: \"x\"\n");
  REQUIRE_FALSE(pattern);
  CHECK(pattern.error().message.find("too deep") != std::string::npos);
}

TEST_CASE("lark regex: a bar in front of the first alternative is an empty one") {
  TextTaker taker;
  CHECK(taker.matches("start: a \"!\"\na: | \"x\"\n", "!"));
  CHECK(taker.matches("start: a \"!\"\na: | \"x\"\n", "x!"));
}

TEST_CASE("lark: patterns of any text, as clients send them for code") {
  TextTaker taker;
  const std::string code =
      "start: pragma_source | plain_source\npragma_source: PRAGMA_LINE NEWLINE SOURCE\n"
      "plain_source: SOURCE\n\nPRAGMA_LINE: /[ \\t]*\\/\\/ @exec:[^\\r\\n]*/\n"
      "NEWLINE: /\\r?\\n/\nSOURCE: /[\\s\\S]+/\n";
  CHECK(taker.matches(code, "// @exec: {}\nls()\n\"x\""));
  CHECK(taker.matches(code, "a\n\nb"));
  CHECK_FALSE(taker.matches(code, ""));
}

TEST_CASE("lark: what would take long is known at once") {
  std::string rules = "start: a0\n";
  std::string deep = "start: a0\n";
  for (int i = 0; i < 60; ++i) rules += fmt::format("a{0}: a{1} a{1}\n", i, i + 1);
  for (int i = 0; i < 50'000; ++i) deep += fmt::format("a{}: a{}\n", i, i + 1);
  CHECK(regex_of_lark(rules + "a60: \"\"\n"));
  const auto wide = regex_of_lark(rules + "a60: \"x\"\n");
  REQUIRE_FALSE(wide);
  CHECK(wide.error().code == ErrorCode::kUnsupported);
  const auto chain = regex_of_lark(deep + "a50000: \"x\"\n");
  REQUIRE_FALSE(chain);
  CHECK(chain.error().message.find("too deep") != std::string::npos);
  CHECK_FALSE(regex_of_lark("start: " + std::string(100'000, '(')));
}

TEST_CASE("lark: what is not offered is named with its line") {
  const auto refusal = [](const std::string& lark) {
    const auto pattern = regex_of_lark(lark);
    REQUIRE_FALSE(pattern);
    return pattern.error();
  };
  const std::pair<const char*, const char*> cases[] = {
      {"start: /a(?=b)/", "lookaround"},
      {"start: \"a\"\n | /a+?b/", "line 2 of the grammar: a pattern has lazy"},
      {"start: /(a)\\1/", "backreferences"},
      {"%declare X\nstart: X", "%declare"},
      {"%import python.NAME\nstart: NAME", "common alone"},
      {"%import common.NOPE\nstart: NOPE", "common.NOPE"},
      {"start: pair{\"a\"}", "templates"},
      {"start: x", "'x'"},
      {"begin: \"a\"", "start"},
      {"start: \"a\"\nstart: \"b\"", "twice"},
      {"start: \"a", "does not end"},
      {"start: (\"a\"", "')'"},
      {"start: \"a\"~x", "a number"},
      {"start: a\na: a \"b\"", "never ends"},
      {"root ::= \"a\"", "':'"}};
  for (const auto& [lark, words] : cases) {
    CAPTURE(lark);
    const Error error = refusal(lark);
    CHECK(error.code == ErrorCode::kInvalid);
    CHECK_MESSAGE(error.message.find(words) != std::string::npos, error.message);
  }
  CHECK(refusal("start: e\ne: \"(\" e \")\" | \"x\"").code == ErrorCode::kUnsupported);
  CHECK(refusal("start: a~9999 \"" + std::string(5000, 'x') + "\"\na: \"b\"").code ==
        ErrorCode::kUnsupported);
}

TEST_CASE("lark: the grammar holds inside of a call, in every dialect") {
  TextTaker taker;
  const auto pattern = regex_of_lark(kPatch);
  REQUIRE(pattern);
  const Json list = Json::array(
      {{{"name", "patch"},
        {"strict", true},
        {"parameters",
         {{"type", "object"},
          {"properties", {{"input", {{"type", "string"}, {"pattern", "^(?:" + *pattern + ")$"}}}}},
          {"required", {"input"}}}}}});
  const dialect::Tools tools(list);
  for (const dialect::Dialect& dialect : dialect::all()) {
    const dialect::Layout& layout = dialect.layout;
    CAPTURE(dialect.name);
    const dialect::GrammarRequest request{
        .tools = tools, .parallel = false, .token = [&](std::string_view word) {
          return taker.tokenizer.id(word);
        }};
    const auto written = [&](const std::string& input) {
      const dialect::Call call{.name = "patch",
                               .id = layout.id.empty() ? "abcdefghi" : "",
                               .arguments = {{"input", input}}};
      std::string text = render(layout, {&call, 1});
      if (text.starts_with(layout.in_prompt)) text.erase(0, layout.in_prompt.size());
      if (text.ends_with(layout.at_end)) text.resize(text.size() - layout.at_end.size());
      return text;
    };
    std::string good = kGoodPatch;
    // A value between tags ends where its closing tag stands.
    if (layout.parameter.find("</parameter>") != std::string::npos) {
      good.replace(good.find("</parameter>"), 12, "</p>");
    }
    std::string bad = good;
    bad.replace(bad.find("Update"), 6, "Change");
    const std::string text = written(good);
    for (const bool is_open : {false, true}) {
      const std::string source =
          is_open ? *open_grammar(dialect, request) : *call_grammar(dialect, request);
      CAPTURE(source);
      CAPTURE(text);
      CHECK(taker.takes(text::bridge::GrammarKind::kLark, source, text));
      CHECK_FALSE(taker.takes(text::bridge::GrammarKind::kLark, source, written(bad)));
    }
    const dialect::Joined seen =
        dialect::parse(dialect::rules_of(dialect.name, tools, false), text);
    REQUIRE(seen.calls.size() == 1);
    CHECK(Json::parse(seen.calls[0].arguments)["input"] == good);
  }
}

}  // namespace
}  // namespace tandem::chat
