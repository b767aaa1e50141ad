// Beginnings that are tried: which bounds they find, and what they make of the time.
#include "grammar/trial.h"

#include <doctest/doctest.h>

#include <string>

#include "grammar/hostile_test.h"
#include "text/testdata/fixtures.h"

namespace tandem::grammar {
namespace {

namespace bridge = text::bridge;

struct Trying {
  text::Tokenizer tokenizer = text::byte_level_fixture();
  gen::TokenId end = *tokenizer.id("<|im_end|>");
  bridge::GrammarHandle words =
      std::move(bridge::make_grammar(tokenizer.handle(), 330, {static_cast<uint32_t>(end)}))
          .value();
  int masks = 0;

  /// The time is over after so many masks.
  Status outcome(const gen::Grammar& grammar, int most_masks) {
    const auto kind = static_cast<bridge::GrammarKind>(grammar.kind);
    const auto matcher = bridge::compile(*words, kind, grammar.source);
    REQUIRE_MESSAGE(matcher.has_value(), (matcher ? "" : matcher.error().message));
    masks = 0;
    return try_beginnings(**matcher,
                          {.logits = 330,
                           .eos = {end},
                           .is_ambiguous = grammar.kind == Kind::kAmbiguousLark,
                           .is_over = [this, most_masks] { return ++masks > most_masks; }});
  }
};

gen::Grammar lark(const std::string& source) {
  return {.kind = Kind::kAmbiguousLark, .source = source};
}

// Each letter may begin another word.
const char* const kWords = "start: word+\nword: (L | \" \")+\nL: /[a-z]/\n";

TEST_CASE("trial: what each token makes costlier is refused when the time is over, and else not") {
  Trying trying;
  const Status early = trying.outcome(lark(kWords), 100);
  REQUIRE_FALSE(early);
  CHECK(early.error().code == ErrorCode::kInvalid);
  CHECK(early.error().message.find("each token costs more") != std::string::npos);
  CHECK(trying.masks == 101);
  CHECK(trying.outcome(json({{"type", "array"}}), 40));
  CHECK(trying.outcome(json({{"anyOf", objects(1000)}}), 40));
}

TEST_CASE("trial: beginnings go on while masks follow more, and end soon where they do not") {
  Trying trying;
  CHECK(trying.outcome({.kind = Kind::kRegex, .source = "[a-z]*"}, 10'000));
  CHECK(trying.masks == 4 * 48);
  CHECK(trying.outcome(lark("start: /[a-z]*/"), 10'000));
  CHECK(trying.masks == 4 * 192);
  const Status doubled = trying.outcome(lark(doubled_rules(30)), 10'000);
  REQUIRE_FALSE(doubled);
  CHECK(doubled.error().message.find("more ways open") != std::string::npos);
}

TEST_CASE("trial: a way that only some beginnings take is found") {
  Trying trying;
  // Wide behind the brace alone; an empty object ends there.
  const gen::Grammar wide =
      json({{"allOf", {{{"anyOf", alike_objects(40, 70)}}, {{"anyOf", alike_objects(3, 60)}}}}});
  const Status checked = trying.outcome(wide, 10'000);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == ErrorCode::kInvalid);
}

}  // namespace
}  // namespace tandem::grammar
