#include "protocol/openai/custom_input.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "protocol/json.h"

namespace tandem::protocol::openai {
namespace {

/// Pieces between random cuts.
std::string input_in_pieces(const std::string& arguments, std::mt19937_64& random) {
  CustomInput reader;
  std::string out;
  for (size_t at = 0; at < arguments.size();) {
    const size_t length = 1 + random() % 7;
    out += reader.feed(std::string_view(arguments).substr(at, length));
    at += length;
  }
  return out += reader.end();
}

std::string random_text(std::mt19937_64& random) {
  static const std::vector<std::string> kCharacters = {"a",
                                                       "\"",
                                                       "\\",
                                                       "/",
                                                       "\n",
                                                       "\r",
                                                       "\t",
                                                       "\b",
                                                       "\f",
                                                       "\x01",
                                                       "{",
                                                       "\xC3\xA9",
                                                       "\x7F",
                                                       "\xE2\x82\xAC",
                                                       "\xF0\x9F\x98\x80",
                                                       "\xEF\xBF\xBD",
                                                       "u",
                                                       "0"};
  std::string out;
  for (size_t left = random() % 20; left > 0; --left) {
    out += kCharacters[random() % kCharacters.size()];
  }
  return out;
}

TEST_CASE("custom input: the text is the same in any cut and spelling, and as JSON has it") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = random_text(random);
    Json object{{"input", text}};
    if (random() % 4 == 0) object["more"] = random_text(random);
    const int indent = random() % 2 == 0 ? -1 : 2;
    const std::string arguments = object.dump(indent, ' ', random() % 2 == 0);
    CAPTURE(arguments);
    CHECK(custom_input(arguments) == text);
    CHECK(input_in_pieces(arguments, random) == text);
  }
}

TEST_CASE("custom input: text comes with the piece that completes it") {
  CustomInput reader;
  CHECK(reader.feed(R"({"inp)").empty());
  CHECK(reader.feed(R"(ut" : "a)") == "a");
  CHECK(reader.feed(R"(b\)") == "b");
  CHECK(reader.feed(R"(nc\ud83d)") == "\nc");
  CHECK(reader.feed(R"(\ude0)").empty());
  CHECK(reader.feed(R"(0d"})") ==
        "\xF0\x9F\x98\x80"
        "d");
  CHECK(reader.end().empty());
}

TEST_CASE("custom input: what arguments without such a text are") {
  const struct {
    const char* arguments;
    const char* text;
  } cases[] = {
      {"", ""},
      {" ", ""},
      {"{}", ""},
      {R"({"more":1,"input":"x"})", "x"},
      {R"({"\u0069nput":"x"})", "x"},
      {R"({"input":5})", R"({"input":5})"},
      {R"({"patch":"x"})", R"({"patch":"x"})"},
      {R"(["x"])", R"(["x"])"},
      {R"({"input":"a\ud800b"})",
       "a\xEF\xBF\xBD"
       "b"},
      {R"({"input":"\ud800\n"})", "\xEF\xBF\xBD\n"},
      {R"({"input":"\ud800\u0041"})",
       "\xEF\xBF\xBD"
       "A"},
      {R"({"input":"\udc00"})", "\xEF\xBF\xBD"},
  };
  std::mt19937_64 random(3);
  for (const auto& test : cases) {
    CAPTURE(test.arguments);
    CHECK(custom_input(test.arguments) == test.text);
    CHECK(input_in_pieces(test.arguments, random) == test.text);
  }
}

}  // namespace
}  // namespace tandem::protocol::openai
