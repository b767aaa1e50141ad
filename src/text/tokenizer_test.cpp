#include "text/tokenizer.h"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "text/template.h"
#include "text/testdata/fixtures.h"

using tandem::ErrorCode;
using tandem::text::byte_level_fixture;
using tandem::text::metaspace_fixture;
using tandem::text::ThinkingMarkers;
using tandem::text::Tokenizer;

TEST_CASE("tokenizer: merges apply and special tokens in a text are recognised") {
  const Tokenizer tokenizer = byte_level_fixture();
  const auto ids = tokenizer.encode("hello world<|im_end|>", false);
  REQUIRE(ids);
  REQUIRE(ids->size() == 3);
  CHECK(tokenizer.spelling((*ids)[0]) == "hello");
  CHECK(tokenizer.spelling((*ids)[1]) == "Ġworld");
  CHECK(tokenizer.bytes((*ids)[1]) == " world");
  CHECK(tokenizer.is_special((*ids)[2]));
  CHECK_FALSE(tokenizer.is_special((*ids)[0]));
}

TEST_CASE("tokenizer: the post-processor's tokens are added only when asked for") {
  const Tokenizer tokenizer = metaspace_fixture();
  const auto bare = tokenizer.encode("the", false);
  const auto full = tokenizer.encode("the", true);
  REQUIRE(bare);
  REQUIRE(full);
  REQUIRE(bare->size() == 1);
  CHECK(*full == std::vector{*tokenizer.id("<s>"), bare->front()});
}

TEST_CASE("tokenizer: byte tokens stand for bytes, marks for spaces, also in added tokens") {
  const Tokenizer tokenizer = metaspace_fixture();
  CHECK(tokenizer.bytes(*tokenizer.id("<0xE2>")) == "\xE2");
  CHECK(tokenizer.bytes(*tokenizer.id("▁the")) == " the");
  CHECK(tokenizer.bytes(*tokenizer.id("▁▁")) == "  ");
  CHECK(tokenizer.strips_leading_space());
  CHECK_FALSE(byte_level_fixture().strips_leading_space());
}

TEST_CASE("tokenizer: every byte of a byte-level vocabulary has its own token") {
  const Tokenizer tokenizer = byte_level_fixture();
  std::array<int, 256> seen{};
  for (int id = 0; id < 256; ++id) {
    REQUIRE(tokenizer.bytes(id).size() == 1);
    ++seen[static_cast<uint8_t>(tokenizer.bytes(id)[0])];
  }
  for (const int count : seen) CHECK(count == 1);
}

TEST_CASE("tokenizer: thinking markers are told by the vocabulary") {
  CHECK(byte_level_fixture().thinking_markers() == ThinkingMarkers{"<think>", "</think>"});
  CHECK(metaspace_fixture().thinking_markers() == ThinkingMarkers{"[THINK]", "[/THINK]"});
  std::string json = tandem::text::read_testdata("byte_level.json");
  const std::string marker = "</think>";
  json.replace(json.find(marker), marker.size(), "</other>");
  CHECK_FALSE(Tokenizer::from_json(json)->thinking_markers());
}

TEST_CASE("tokenizer: files that cannot be read are refused with a reason") {
  for (const std::string json :
       {"", "{", "{}", "[]", R"({"model": {"type": "BPE"}})",
        R"({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}})",
        R"({"model": {"type": "BPE", "vocab": {"a": 4294967295}, "merges": []}})",
        R"({"decoder": {"type": "CTC"}, "model": {"vocab": {"a": 0}}})"}) {
    CAPTURE(json);
    const auto tokenizer = Tokenizer::from_json(json);
    REQUIRE_FALSE(tokenizer);
    CHECK(tokenizer.error().code == ErrorCode::kCorrupt);
    CHECK_FALSE(tokenizer.error().message.empty());
  }
}

TEST_CASE("tokenizer: text that is not UTF-8 is refused") {
  const auto ids = byte_level_fixture().encode("a\xFF", false);
  REQUIRE_FALSE(ids);
  CHECK(ids.error().code == ErrorCode::kInvalid);
}

TEST_CASE("bridge: a panic becomes an error and the process lives") {
  const auto status = tandem::text::bridge::panic_for_test();
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::kInternal);
  CHECK(status.error().message.find("asked to") != std::string::npos);
}

TEST_CASE("tokenizer: ids equal those of the reference under every splitting rule") {
  using tandem::text::Json;
  for (const Json& group : Json::parse(tandem::text::read_testdata("encode_cases.json"))) {
    Json config = Json::parse(tandem::text::read_testdata(group["fixture"].get<std::string>()));
    if (!group["pre_tokenizer"].is_null()) config["pre_tokenizer"] = group["pre_tokenizer"];
    const std::string name = group["name"];
    CAPTURE(name);
    const auto tokenizer = Tokenizer::from_json(config.dump());
    REQUIRE(tokenizer);
    for (const Json& item : group["cases"]) {
      const std::string text = item["text"];
      CAPTURE(text);
      const auto plain = tokenizer->encode(text, false);
      REQUIRE(plain);
      CHECK(*plain == item["plain"].get<std::vector<tandem::text::TokenId>>());
      const auto special = tokenizer->encode(text, true);
      REQUIRE(special);
      CHECK(*special == item["with_special"].get<std::vector<tandem::text::TokenId>>());
    }
  }
}
