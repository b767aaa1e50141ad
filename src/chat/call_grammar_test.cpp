// Grammars of forced calls: the bridge takes them for every dialect, and what is drawn under their
// masks is read back as calls that fit.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "dialect/grammar.h"
#include "dialect/joined_test.h"
#include "dialect/random_call_test.h"
#include "grammar/source_limits.h"
#include "text/bridge.h"
#include "text/testdata/fixtures.h"

namespace tandem::dialect {
namespace {

using text::bridge::GrammarKind;
using Ids = std::vector<uint32_t>;

constexpr uint32_t kLogits = 330;
constexpr int kMostTokens = 700;

/// Small, so that random draws end soon.
Json small_tools() {
  return Json::parse(R"([{"type": "function", "function": {"name": "put", "parameters": {
    "type": "object", "additionalProperties": false,
    "properties": {"kind": {"enum": ["a", "b"]}, "n": {"type": "integer", "minimum": 1, "maximum": 9},
                   "on": {"type": "boolean"}},
    "required": ["kind", "n"]}}}])");
}

struct Vocabulary {
  text::Tokenizer tokenizer = text::byte_level_fixture();
  uint32_t end = static_cast<uint32_t>(*tokenizer.id("<|im_end|>"));
  text::bridge::GrammarHandle grammar =
      std::move(text::bridge::make_grammar(tokenizer.handle(), kLogits, {end})).value();

  GrammarRequest request(const Tools& tools) const {
    return {.tools = tools, .token = [this](std::string_view text) -> std::optional<int32_t> {
              return tokenizer.id(text);
            }};
  }

  Result<text::bridge::MatcherHandle> compile(const std::string& source) const {
    return text::bridge::compile(*grammar, GrammarKind::kLark, source);
  }

  /// Draws allowed tokens, the end wherever it may come.
  std::string draw(tb_matcher& matcher, std::mt19937& random) const {
    std::string text;
    for (int step = 0; step < kMostTokens; ++step) {
      std::vector<uint32_t> mask((kLogits + 31) / 32, 0);
      REQUIRE(text::bridge::fill_mask(matcher, mask));
      Ids ids;
      for (uint32_t id = 0; id < mask.size() * 32; ++id) {
        if ((mask[id / 32] >> (id % 32) & 1U) != 0) ids.push_back(id);
      }
      REQUIRE_FALSE(ids.empty());
      const bool may_end = std::ranges::find(ids, end) != ids.end();
      const uint32_t id = may_end ? end : ids[random() % ids.size()];
      const Status consumed = text::bridge::consume(matcher, {id});
      REQUIRE_MESSAGE(consumed.has_value(),
                      text << " + " << id << ": " << (consumed ? "" : consumed.error().message));
      if (id == end) return text;
      text += tokenizer.bytes(static_cast<text::TokenId>(id));
    }
    return "endless";
  }
};

TEST_CASE("call grammar: the bridge compiles that of every dialect, with thinking and without") {
  const Vocabulary vocabulary;
  const Tools tools(sample_tools());
  for (const Dialect& dialect : all()) {
    for (const bool thinks : {false, true}) {
      GrammarRequest request = vocabulary.request(tools);
      if (thinks) request.thinking = ThinkingMarkers{.start = "<think>", .end = "</think>"};
      request.in_thinking = thinks;
      const std::string source = call_grammar(dialect, request);
      const auto matcher = vocabulary.compile(source);
      CAPTURE(dialect.name);
      CAPTURE(source);
      CHECK_MESSAGE(matcher.has_value(), (matcher ? "" : matcher.error().message));
    }
  }
}

TEST_CASE("call grammar: what is drawn under it is a call of the tool, which fits its schema") {
  const Vocabulary vocabulary;
  const Tools tools(small_tools());
  std::mt19937 random(23);
  for (const Dialect& dialect : all()) {
    GrammarRequest request = vocabulary.request(tools);
    request.parallel = false;
    const std::string source = call_grammar(dialect, request);
    CAPTURE(dialect.name);
    CAPTURE(source);
    for (int round = 0; round < 3; ++round) {
      const auto matcher = vocabulary.compile(source);
      REQUIRE_MESSAGE(matcher.has_value(), (matcher ? "" : matcher.error().message));
      const std::string text = vocabulary.draw(**matcher, random);
      if (text == "endless") continue;  // white space or digits without end
      CAPTURE(text);
      const Joined seen = dialect::parse(rules_of(dialect.name, tools, false), text);
      REQUIRE(seen.calls.size() == 1);
      CHECK(seen.calls[0].name == "put");
      CHECK(seen.text.empty());
      const Json arguments = Json::parse(seen.calls[0].arguments);
      CHECK((arguments["kind"] == "a" || arguments["kind"] == "b"));
      CHECK(arguments["n"].is_number_integer());
    }
  }
}

/// So deep as dialects that do not write JSON bind values.
bool is_tree(const Json& node, int depth = 4) {
  if (depth == 0) return true;
  if (!node.is_object() || node.size() > 2 || !node.contains("n")) return false;
  return (node["n"] == 1 || node["n"] == 2) &&
         (!node.contains("child") || is_tree(node["child"], depth - 1));
}

TEST_CASE("call grammar: a schema that refers to all of itself binds as deep as it is drawn") {
  const Vocabulary vocabulary;
  const Tools tools(
      Json::parse(R"([{"type": "function", "function": {"name": "tree", "parameters": {
    "type": "object", "additionalProperties": false,
    "properties": {"n": {"enum": [1, 2]}, "child": {"$ref": "#"}}, "required": ["n"]}}}])"));
  std::mt19937 random(29);
  int complete = 0;
  for (const Dialect& dialect : all()) {
    GrammarRequest request = vocabulary.request(tools);
    request.parallel = false;
    const std::string source = call_grammar(dialect, request);
    CAPTURE(dialect.name);
    CAPTURE(source);
    CHECK(grammar::check_source({.kind = gen::GrammarKind::kLark, .source = source}));
    for (int round = 0; round < 6; ++round) {
      const auto matcher = vocabulary.compile(source);
      REQUIRE_MESSAGE(matcher.has_value(), (matcher ? "" : matcher.error().message));
      const std::string text = vocabulary.draw(**matcher, random);
      if (text == "endless") continue;
      ++complete;
      CAPTURE(text);
      const Joined seen = dialect::parse(rules_of(dialect.name, tools, false), text);
      REQUIRE(seen.calls.size() == 1);
      CHECK(seen.calls[0].name == "tree");
      CHECK(is_tree(Json::parse(seen.calls[0].arguments)));
    }
  }
  CHECK(complete > static_cast<int>(all().size()));
}

TEST_CASE("call grammar: prose with calls in it compiles for every dialect that marks its calls") {
  const Vocabulary vocabulary;
  const Tools tools(sample_tools());
  size_t open = 0;
  for (const Dialect& dialect : all()) {
    GrammarRequest request = vocabulary.request(tools);
    request.thinking = ThinkingMarkers{.start = "<think>", .end = "</think>"};
    const auto source = open_grammar(dialect, request);
    CAPTURE(dialect.name);
    const bool marks = !dialect.syntax->owns_answer() && dialect.syntax->bare_start() == 0;
    if (!source) {
      CHECK_FALSE((marks && dialect.syntax->starts().size() == 1));
      continue;
    }
    ++open;
    CAPTURE(*source);
    const auto matcher = vocabulary.compile(*source);
    REQUIRE_MESSAGE(matcher.has_value(), (matcher ? "" : matcher.error().message));
    const auto ids = *vocabulary.tokenizer.encode("the end, hello", false);
    CHECK(text::bridge::consume(**matcher, Ids(ids.begin(), ids.end())));
    CHECK(*text::bridge::may_end(**matcher));
  }
  CHECK(open > all().size() / 2);
}

TEST_CASE("call grammar: a named tool is the only one") {
  const Tools tools(sample_tools());
  GrammarRequest request{.tools = tools, .only = {"ls"}};
  const std::string source = call_grammar(*find("json_tools"), request);
  CHECK(source.find("ls") != std::string::npos);
  CHECK(source.find("put") == std::string::npos);
}

}  // namespace
}  // namespace tandem::dialect
