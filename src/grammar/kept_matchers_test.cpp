// Which compiled grammars are kept, by what they take in memory.
#include "grammar/kept_matchers.h"

#include <doctest/doctest.h>

#include <string>

#include "grammar/hostile_test.h"
#include "text/testdata/fixtures.h"

namespace tandem::grammar {
namespace {

namespace bridge = text::bridge;

struct Making {
  text::Tokenizer tokenizer = text::byte_level_fixture();
  bridge::GrammarHandle words =
      std::move(bridge::make_grammar(
                    tokenizer.handle(), 330, {static_cast<uint32_t>(*tokenizer.id("<|im_end|>"))}))
          .value();

  bridge::MatcherHandle matcher(const gen::Grammar& grammar) {
    auto made =
        bridge::compile(*words, static_cast<bridge::GrammarKind>(grammar.kind), grammar.source);
    REQUIRE(made);
    return *std::move(made);
  }
};

gen::Grammar letter(char c) { return {.kind = Kind::kRegex, .source = std::string(1, c) + "+"}; }

TEST_CASE("kept matchers: what a schema becomes counts, however short it is") {
  Making making;
  const gen::Grammar large = json(multiples(99'991, 0, 1e9));
  const gen::Grammar small = letter('a');
  const auto matcher = making.matcher(large);
  CHECK(large.source.size() < 200);
  CHECK(bridge::bytes(*matcher) > size_t{4} << 20);
  CHECK(bridge::bytes(*making.matcher(small)) < size_t{1} << 20);
  KeptMatchers kept(size_t{2} << 20);
  kept.keep(small, *making.matcher(small));
  kept.keep(large, *matcher);
  CHECK_FALSE(kept.copy(large));
  CHECK(kept.copy(small));
  KeptMatchers roomy;
  roomy.keep(large, *matcher);
  CHECK(roomy.copy(large));
}

TEST_CASE("kept matchers: those used last are kept, as far as all fit together") {
  Making making;
  const auto room = bridge::bytes(*making.matcher(letter('a'))) * 5 / 2;
  KeptMatchers kept(room);
  for (const char c : {'a', 'b'}) kept.keep(letter(c), *making.matcher(letter(c)));
  CHECK(kept.copy(letter('a')));
  kept.keep(letter('c'), *making.matcher(letter('c')));
  CHECK(kept.copy(letter('a')));
  CHECK_FALSE(kept.copy(letter('b')));
  CHECK(kept.copy(letter('c')));
}

}  // namespace
}  // namespace tandem::grammar
