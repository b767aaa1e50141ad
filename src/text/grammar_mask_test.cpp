// Token masks of the bridge: what a grammar allows, token after token.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "text/bridge.h"
#include "text/testdata/fixtures.h"

using namespace tandem;
using namespace tandem::text;
using bridge::GrammarKind;
using Ids = std::vector<uint32_t>;

namespace {

constexpr uint32_t kLogits = 330;  // more than the vocabulary, as models have

struct Fixture {
  Tokenizer tokenizer = byte_level_fixture();
  uint32_t end = static_cast<uint32_t>(*tokenizer.id("<|im_end|>"));
  bridge::GrammarHandle grammar =
      std::move(bridge::make_grammar(tokenizer.handle(), kLogits, {end})).value();

  bridge::MatcherHandle compile(GrammarKind kind, const std::string& source) const {
    auto matcher = bridge::compile(*grammar, kind, source);
    REQUIRE_MESSAGE(matcher.has_value(), (matcher ? "" : matcher.error().message));
    return std::move(matcher).value();
  }

  /// Ids that the mask allows.
  static Ids allowed(tb_matcher& matcher) {
    std::vector<uint32_t> mask((kLogits + 31) / 32, ~0U);
    REQUIRE(bridge::fill_mask(matcher, mask));
    Ids ids;
    for (uint32_t id = 0; id < mask.size() * 32; ++id) {
      if ((mask[id / 32] >> (id % 32) & 1U) != 0) ids.push_back(id);
    }
    return ids;
  }

  /// Draws allowed tokens at random until the end-of-text token; the text.
  std::string draw(tb_matcher& matcher, std::mt19937& random) const {
    std::string text;
    for (int step = 0; step < 400; ++step) {
      const Ids ids = allowed(matcher);
      REQUIRE_FALSE(ids.empty());
      const uint32_t id = ids[random() % ids.size()];
      REQUIRE(bridge::consume(matcher, {id}));
      if (id == end) return text;
      text += tokenizer.bytes(static_cast<TokenId>(id));
    }
    return "endless";
  }
};

}  // namespace

TEST_CASE("grammar: whatever is drawn under a schema's mask fits the schema") {
  const Fixture fixture;
  const std::string schema = R"({"type": "object", "additionalProperties": false,
    "properties": {"kind": {"enum": ["hello", "world"]}, "count": {"type": "integer", "minimum": 1, "maximum": 99},
                   "on": {"type": "boolean"}}, "required": ["kind", "count", "on"]})";
  std::mt19937 random(17);
  for (int round = 0; round < 25; ++round) {
    const auto matcher = fixture.compile(GrammarKind::kJsonSchema, schema);
    const std::string text = fixture.draw(*matcher, random);
    CAPTURE(text);
    const auto json = nlohmann::json::parse(text, nullptr, false);
    REQUIRE(json.is_object());
    CHECK(json.size() == 3);
    CHECK((json["kind"] == "hello" || json["kind"] == "world"));
    CHECK(json["count"].is_number_integer());
    CHECK(json["count"] >= 1);
    CHECK(json["count"] <= 99);
    CHECK(json["on"].is_boolean());
  }
}

TEST_CASE("grammar: regular expressions and Lark grammars mask too") {
  const Fixture fixture;
  std::mt19937 random(19);
  for (int round = 0; round < 20; ++round) {
    const auto regex = fixture.compile(GrammarKind::kRegex, "(hello|world){2}");
    const std::string text = fixture.draw(*regex, random);
    CHECK(text.size() == 10);
    CHECK((text.starts_with("hello") || text.starts_with("world")));
    const auto lark = fixture.compile(GrammarKind::kLark, "start: \"the\" (\" end\" | \" stop\")");
    const std::string other = fixture.draw(*lark, random);
    CHECK((other == "the end" || other == "the stop"));
  }
}

TEST_CASE("grammar: the end is allowed only where the text may end, padding ids never") {
  const Fixture fixture;
  const auto matcher = fixture.compile(GrammarKind::kRegex, "a+");
  CHECK_FALSE(*bridge::may_end(*matcher));
  Ids ids = Fixture::allowed(*matcher);
  CHECK(std::ranges::find(ids, fixture.end) == ids.end());
  for (const uint32_t id : ids) CHECK(id < static_cast<uint32_t>(fixture.tokenizer.size()));
  REQUIRE(bridge::consume(*matcher, {static_cast<uint32_t>(*fixture.tokenizer.id("a"))}));
  CHECK(*bridge::may_end(*matcher));
  ids = Fixture::allowed(*matcher);
  CHECK(std::ranges::find(ids, fixture.end) != ids.end());
  REQUIRE(bridge::consume(*matcher, {fixture.end}));
  CHECK(*bridge::has_ended(*matcher));
}

TEST_CASE("grammar: copies are independent, rollback takes tokens back") {
  const Fixture fixture;
  const auto matcher = fixture.compile(GrammarKind::kRegex, "(ab|cd)e");
  const auto id = [&](const char* token) {
    return static_cast<uint32_t>(*fixture.tokenizer.id(token));
  };
  const Ids start = Fixture::allowed(*matcher);
  const auto copy = std::move(bridge::clone(*matcher)).value();
  REQUIRE(bridge::consume(*matcher, {id("a"), id("b")}));
  CHECK(Fixture::allowed(*copy) == start);
  REQUIRE(bridge::consume(*copy, {id("c")}));
  CHECK(Fixture::allowed(*copy) == Ids{id("d")});
  CHECK(Fixture::allowed(*matcher) == Ids{id("e")});
  REQUIRE(bridge::rollback(*matcher, 1));
  CHECK(Fixture::allowed(*matcher) == Ids{id("b")});
  REQUIRE(bridge::rollback(*matcher, 1));
  CHECK(Fixture::allowed(*matcher) == start);
  CHECK(*bridge::accepted(*matcher, {id("a"), id("b"), id("x")}) == 2);
  CHECK(Fixture::allowed(*matcher) == start);
  REQUIRE(bridge::consume(*matcher, {id("a"), id("b"), id("e"), fixture.end}));
  CHECK(*bridge::has_ended(*matcher));
  REQUIRE(bridge::rollback(*matcher, 2));
  CHECK_FALSE(*bridge::has_ended(*matcher));
  CHECK(Fixture::allowed(*matcher) == Ids{id("e")});
}

TEST_CASE("grammar: what the grammar forbids is an error that stays") {
  const Fixture fixture;
  const auto matcher = fixture.compile(GrammarKind::kRegex, "a");
  CHECK_FALSE(bridge::consume(*matcher, {static_cast<uint32_t>(*fixture.tokenizer.id("b"))}));
  std::vector<uint32_t> mask((kLogits + 31) / 32);
  CHECK_FALSE(bridge::fill_mask(*matcher, mask));
  const auto fresh = fixture.compile(GrammarKind::kRegex, "a");
  std::vector<uint32_t> small(1);
  CHECK_FALSE(bridge::fill_mask(*fresh, small));
}

TEST_CASE("grammar: hostile and broken sources are refused") {
  const Fixture fixture;
  nlohmann::json many = {{"allOf", nlohmann::json::array()}};
  for (int i = 0; i < 40; ++i) {
    many["allOf"].push_back({{"type", "string"}, {"pattern", "^.*" + std::to_string(i) + ".*$"}});
  }
  const std::pair<GrammarKind, std::string> sources[] = {
      {GrammarKind::kJsonSchema, "{"},
      {GrammarKind::kJsonSchema, R"({"properties": {"foo": "bar"}})"},
      {GrammarKind::kJsonSchema, many.dump()},
      {GrammarKind::kJsonSchema, R"({"type": "string", "pattern": "(?<=x)y"})"},
      {GrammarKind::kRegex, "("},
      {GrammarKind::kRegex, std::string(5000, '(') + std::string(5000, ')')},
      {GrammarKind::kLark, "start: missing"},
      {GrammarKind::kRegex, std::string(2 << 20, 'a')}};
  for (const auto& [kind, source] : sources) {
    CAPTURE(source.substr(0, 80));
    const auto matcher = bridge::compile(*fixture.grammar, kind, source);
    REQUIRE_FALSE(matcher);
    CHECK(matcher.error().code == ErrorCode::kInvalid);
    CHECK_FALSE(matcher.error().message.empty());
  }
  CHECK_FALSE(bridge::make_grammar(fixture.tokenizer.handle(), kLogits, {}));
  CHECK_FALSE(bridge::make_grammar(fixture.tokenizer.handle(), 10, {fixture.end}));
}
