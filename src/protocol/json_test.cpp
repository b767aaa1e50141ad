#include "protocol/json.h"

#include <doctest/doctest.h>

#include <chrono>

namespace tandem::protocol {
namespace {

std::string repeated(const std::string& text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST_CASE("json: bombs are refused quickly, whatever they are made of") {
  const std::string bombs[] = {
      repeated("[", 200),
      repeated("[", 10'000) + repeated("]", 10'000),
      repeated("{\"a\":", 3'000) + "1" + repeated("}", 3'000),
      "[" + repeated("0,", 3'000'000) + "0]",
      repeated("[", 50) + repeated("\"", 1'000'001),
  };
  for (const std::string& bomb : bombs) {
    const auto begin = std::chrono::steady_clock::now();
    const auto parsed = parse_json(bomb);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == ErrorCode::kInvalid);
    CHECK(parsed.error().message.size() < 400);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
  }
  std::string wide = "{\"0\":0";
  for (int i = 1; i < 5'000; ++i) wide += ",\"" + std::to_string(i) + "\":0";
  CHECK_FALSE(parse_json(wide + "}"));
}

TEST_CASE("json: brackets and commas in strings are text") {
  const std::string text = "[\"" + repeated("[{,\\\"", 5'000) + "\"]";
  REQUIRE(parse_json(text));
  CHECK(parse_json(text).value()[0].get<std::string>().size() == 4 * 5'000);
  CHECK(parse_json(repeated("[", 100) + repeated("]", 100)));
}

TEST_CASE("json: bytes that are not UTF-8 are refused on the way in, replaced on the way out") {
  CHECK_FALSE(parse_json("\"\xFF\""));
  CHECK_FALSE(parse_json("\"\xED\xA0\x80\""));
  for (const std::string& text : {std::string("{}\0", 3), std::string("{}\0 garbage", 11)}) {
    CHECK_FALSE(parse_json(text));
  }
  CHECK(parse_json(R"("\u0000")"));
  CHECK(literal("a\xFF\"\n") == "\"a\xEF\xBF\xBD\\\"\\n\"");
  CHECK(lossy_utf8("\xF0\x9F\x98") == "\xEF\xBF\xBD");
  CHECK(shortened("h\xC3\xA9llo", 2) == "h…");
}

}  // namespace
}  // namespace tandem::protocol
