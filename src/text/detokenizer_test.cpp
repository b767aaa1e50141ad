#include "text/detokenizer.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "text/testdata/fixtures.h"

using tandem::text::Detokenizer;
using tandem::text::TokenId;
using tandem::text::Tokenizer;
using tandem::text::Utf8Assembler;

namespace {

const std::string kFamily = "\U0001F468\u200D\U0001F469\u200D\U0001F467";
const std::string kReplacement = "\uFFFD";

std::string assemble(const std::vector<std::string_view>& parts) {
  Utf8Assembler assembler;
  std::string text;
  for (const std::string_view part : parts) text += assembler.push(part);
  return text;
}

}  // namespace

TEST_CASE("utf8: the text does not depend on where the bytes are cut") {
  const std::string texts[] = {"plain", kFamily + " \U0001F1E9\U0001F1EA 한국어",
                               "broken \xF0\x9F then \xC3( and \xFF\xFE",
                               "\xED\xA0\x80 surrogate, \xC0\xAF overlong, \xF5 too large"};
  for (const std::string& text : texts) {
    const std::string whole = assemble({text});
    for (size_t first = 0; first <= text.size(); ++first) {
      for (size_t second = first; second <= text.size(); ++second) {
        const std::string_view view = text;
        CHECK(assemble({view.substr(0, first), view.substr(first, second - first),
                        view.substr(second)}) == whole);
      }
    }
  }
}

TEST_CASE("utf8: broken bytes become one replacement for each maximal broken part") {
  CHECK(assemble({"a\xFF"
                  "b"}) == "a" + kReplacement + "b");
  CHECK(assemble({"\xF0\x9F("}) == kReplacement + "(");
  CHECK(assemble({"\xE0\x80\x80"}) == kReplacement + kReplacement + kReplacement);
}

TEST_CASE("utf8: an answer cut inside a character ends before it") {
  Utf8Assembler assembler;
  CHECK(assembler.push("ok \xF0\x9F\x91") == "ok ");
  CHECK(assembler.pending() == 3);
  CHECK(assembler.finish());
  CHECK(assembler.pending() == 0);
  CHECK_FALSE(assembler.finish());
}

TEST_CASE("detokenizer: what was encoded comes back, whatever the text") {
  std::mt19937 random(7);
  const std::string alphabet[] = {"a", "th", "e ",    " ", "  ", "\n",
                                  "é", "한", kFamily, "1", "!",  "▁"};
  for (const Tokenizer& tokenizer :
       {tandem::text::byte_level_fixture(), tandem::text::metaspace_fixture()}) {
    for (int round = 0; round < 300; ++round) {
      std::string text;
      for (size_t i = 0; i < random() % 12; ++i) text += alphabet[random() % std::size(alphabet)];
      CAPTURE(text);
      const auto ids = tokenizer.encode(text, false);
      REQUIRE(ids);
      Detokenizer detokenizer(tokenizer);
      std::string decoded;
      for (const TokenId id : *ids) decoded += detokenizer.push(id);
      CHECK_FALSE(detokenizer.finish());
      const bool mark = tokenizer.strips_leading_space() && text.find("▁") != std::string::npos;
      if (!mark) CHECK(decoded == text);
    }
  }
}

TEST_CASE("detokenizer: one leading space goes when the tokenizer put it there, later ones stay") {
  const Tokenizer tokenizer = tandem::text::metaspace_fixture();
  const auto word = tokenizer.id("▁the");
  REQUIRE(word);
  Detokenizer detokenizer(tokenizer);
  CHECK(detokenizer.push(*word) == "the");
  CHECK(detokenizer.push(*word) == " the");
}

TEST_CASE("detokenizer: ids without a token are no text") {
  const Tokenizer tokenizer = tandem::text::byte_level_fixture();
  Detokenizer detokenizer(tokenizer);
  CHECK(detokenizer.push(-1).empty());
  CHECK(detokenizer.push(tokenizer.size() + 100).empty());
}
