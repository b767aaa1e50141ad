#include "text/gguf_text.h"

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "text/testdata/fixtures.h"

using tandem::ErrorCode;
using tandem::text::GgufVocabulary;
using tandem::text::to_tokenizer_json;
using tandem::text::Tokenizer;

namespace {

/// The arrays a GGUF file would hold for a fixture.
GgufVocabulary as_gguf(const std::string& name, const std::string& model) {
  const auto json = nlohmann::json::parse(tandem::text::read_testdata(name));
  GgufVocabulary result{.model = model, .pre = "qwen2"};
  const Tokenizer tokenizer = tandem::text::load_fixture(name);
  for (tandem::text::TokenId id = 0; id < tokenizer.size(); ++id) {
    result.tokens.emplace_back(tokenizer.spelling(id));
    result.scores.push_back(-1e6);
    result.types.push_back(1);
  }
  for (const auto& added : json["added_tokens"]) {
    result.types[added["id"].get<size_t>()] = added["special"].get<bool>() ? 3 : 4;
  }
  double score = 0;
  for (const auto& merge : json["model"]["merges"]) {
    const std::string left = merge[0];
    const std::string right = merge[1];
    result.merges.push_back(left + " " + right);
    result.scores[static_cast<size_t>(*tokenizer.id(left + right))] = --score;
  }
  return result;
}

Tokenizer convert(const GgufVocabulary& vocabulary) {
  const auto json = to_tokenizer_json(vocabulary);
  REQUIRE(json);
  auto tokenizer = Tokenizer::from_json(*json);
  REQUIRE(tokenizer);
  return std::move(tokenizer).value();
}

/// How a text is split: the spellings of its tokens.
std::vector<std::string> pieces(const Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizer.encode(text, false);
  REQUIRE_MESSAGE(ids.has_value(), (ids ? "" : ids.error().message));
  std::vector<std::string> result;
  for (const auto id : *ids) result.emplace_back(tokenizer.spelling(id));
  return result;
}

const std::vector<std::string> kTexts = {"",
                                         " ",
                                         "hello world",
                                         "the  and\n\n  User: stop",
                                         "<|im_start|>hello<think>",
                                         "é 한국어 \U0001F468",
                                         "it's 1234 DON'T",
                                         "a\tb\r\n",
                                         "   leading",
                                         "trailing   "};

}  // namespace

TEST_CASE("gguf text: a byte-level vocabulary encodes as its tokenizer.json does") {
  const Tokenizer original = tandem::text::byte_level_fixture();
  const Tokenizer converted = convert(as_gguf("byte_level.json", "gpt2"));
  for (const std::string& text : kTexts) {
    CAPTURE(text);
    CHECK(*converted.encode(text, true) == *original.encode(text, true));
  }
  CHECK(converted.is_special(*converted.id("<|im_end|>")));
  CHECK_FALSE(converted.is_special(*converted.id("<think>")));
}

TEST_CASE("gguf text: a SentencePiece vocabulary encodes as its tokenizer.json does") {
  const Tokenizer original = tandem::text::metaspace_fixture();
  GgufVocabulary vocabulary = as_gguf("metaspace.json", "llama");
  vocabulary.types[0] = 2;
  vocabulary.bos = 1;
  vocabulary.add_bos = true;
  const Tokenizer converted = convert(vocabulary);
  for (const std::string& text : kTexts) {
    CAPTURE(text);
    CHECK(*converted.encode(text, true) == *original.encode(text, true));
  }
  CHECK(converted.strips_leading_space());
  vocabulary.add_space_prefix = false;
  CHECK_FALSE(convert(vocabulary).strips_leading_space());
}

TEST_CASE("gguf text: a SentencePiece vocabulary of gemma4 has its merges listed, and no scores") {
  const Tokenizer original = tandem::text::metaspace_fixture();
  GgufVocabulary vocabulary = as_gguf("metaspace.json", "gemma4");
  vocabulary.types[0] = 2;
  vocabulary.scores.clear();
  const Tokenizer converted = convert(vocabulary);
  for (const std::string& text : kTexts) {
    CAPTURE(text);
    CHECK(*converted.encode(text, false) == *original.encode(text, false));
  }
}

TEST_CASE("gguf text: rules of newer models keep together what theirs do") {
  GgufVocabulary vocabulary = as_gguf("byte_level.json", "gpt2");
  // A letter with a mark that NFC leaves apart, and a Chinese character before a letter.
  const std::string marked = "e\u0334x", chinese = "\u4e2da", sign = "!\n", digits = "11";
  for (const char* merge : {"! Ċ", "e Ì", "eÌ ´", "eÌ´ x", "ä ¸", "ä¸ Ń", "ä¸Ń a", "1 1"}) {
    const std::string text(merge);
    const size_t space = text.find(' ');
    vocabulary.merges.push_back(text);
    vocabulary.tokens.push_back(text.substr(0, space) + text.substr(space + 1));
  }
  vocabulary.types.resize(vocabulary.tokens.size(), 1);
  vocabulary.scores.resize(vocabulary.tokens.size(), 0);
  const auto length = [&](const char* pre, const std::string& text) {
    vocabulary.pre = pre;
    return pieces(convert(vocabulary), text).size();
  };
  struct Expected {
    const char* pre;
    size_t marked, chinese, sign, digits;
  };
  for (const Expected& each : {Expected{"qwen2", 4, 1, 1, 2}, Expected{"qwen35", 1, 1, 1, 2},
                               Expected{"seed-coder", 4, 1, 2, 2}, Expected{"glm4", 4, 1, 1, 1},
                               Expected{"dbrx", 4, 1, 1, 1}, Expected{"minimax-m2", 1, 1, 1, 1},
                               Expected{"kimi-k2", 1, 2, 1, 1}}) {
    CAPTURE(each.pre);
    CHECK(length(each.pre, marked) == each.marked);
    CHECK(length(each.pre, chinese) == each.chinese);
    CHECK(length(each.pre, sign) == each.sign);
    CHECK(length(each.pre, digits) == each.digits);
  }
}

TEST_CASE("gguf text: splitting rules differ where they should") {
  GgufVocabulary vocabulary = as_gguf("byte_level.json", "gpt2");
  vocabulary.tokens.insert(vocabulary.tokens.end(), {"11", "111", "Ġ1"});
  vocabulary.types.resize(vocabulary.tokens.size(), 1);
  vocabulary.scores.resize(vocabulary.tokens.size(), 0);
  vocabulary.merges.insert(vocabulary.merges.end(), {"1 1", "11 1", "Ġ 1"});
  const std::string text = "1111 1";
  using Pieces = std::vector<std::string>;
  const std::pair<std::string, Pieces> expected[] = {{"gpt-2", {"11", "11", "Ġ1"}},
                                                     {"default", {"11", "11", "Ġ1"}},
                                                     {"smollm", {"1", "1", "1", "1", "Ġ", "1"}},
                                                     {"qwen2", {"1", "1", "1", "1", "Ġ", "1"}},
                                                     {"llama-bpe", {"111", "1", "Ġ", "1"}},
                                                     {"gpt-4o", {"111", "1", "Ġ", "1"}},
                                                     {"tekken", {"1", "1", "1", "1", "Ġ", "1"}},
                                                     {"deepseek-v3", {"111", "1", "Ġ", "1"}}};
  for (const auto& [pre, wanted] : expected) {
    CAPTURE(pre);
    vocabulary.pre = pre;
    const auto found = pieces(convert(vocabulary), text);
    CAPTURE(fmt::format("{}", fmt::join(found, "|")));
    CHECK(found == wanted);
  }
}

TEST_CASE("gguf text: what is not known is refused by name") {
  GgufVocabulary vocabulary = as_gguf("byte_level.json", "gpt2");
  vocabulary.pre = "from-the-future";
  auto json = to_tokenizer_json(vocabulary);
  REQUIRE_FALSE(json);
  CHECK(json.error().code == ErrorCode::kUnsupported);
  CHECK(json.error().message.find("from-the-future") != std::string::npos);
  vocabulary.model = "t5";
  json = to_tokenizer_json(vocabulary);
  REQUIRE_FALSE(json);
  CHECK(json.error().code == ErrorCode::kUnsupported);
  CHECK(json.error().message.find("t5") != std::string::npos);
}

TEST_CASE("gguf text: arrays that do not fit each other are refused") {
  GgufVocabulary vocabulary = as_gguf("byte_level.json", "gpt2");
  vocabulary.types.pop_back();
  CHECK(to_tokenizer_json(vocabulary).error().code == ErrorCode::kCorrupt);
  vocabulary = as_gguf("byte_level.json", "gpt2");
  vocabulary.bos = 100000;
  CHECK(to_tokenizer_json(vocabulary).error().code == ErrorCode::kCorrupt);
  vocabulary = as_gguf("byte_level.json", "gpt2");
  vocabulary.merges.emplace_back("nospace");
  CHECK(to_tokenizer_json(vocabulary).error().code == ErrorCode::kCorrupt);
  vocabulary = as_gguf("metaspace.json", "llama");
  vocabulary.scores.clear();
  CHECK(to_tokenizer_json(vocabulary).error().code == ErrorCode::kCorrupt);
  CHECK(to_tokenizer_json({}).error().code == ErrorCode::kCorrupt);
}
