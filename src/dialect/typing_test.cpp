// Values typed by schema: nothing is lost.
#include "dialect/typing.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace tandem::dialect;

namespace {

Json as(const std::string& text, const std::string& schema, Untyped untyped = Untyped::kText) {
  const Json document = Json::parse(schema);
  return Json::parse(typed(text, Schema(document).kinds(), untyped));
}

}  // namespace

TEST_CASE("typing: a declared string stays as it is") {
  for (const char* text : {"007", "true", "null", "[1, 2]", "", " a \n", "1.0"}) {
    CHECK(as(text, R"({"type": "string"})") == text);
    CHECK(as(text, R"({"enum": ["a", "b"]})") == text);
  }
}

TEST_CASE("typing: numbers only where they are written as one") {
  CHECK(as("12", R"({"type": "integer"})") == 12);
  CHECK(as(" -3\n", R"({"type": "integer"})") == -3);
  CHECK(as("4.0", R"({"type": "integer"})") == 4);
  CHECK(as("12345678901234567890", R"({"type": "integer"})") == 12345678901234567890ULL);
  for (const char* text : {"007", "4.5", "abc", "", "+5", "1_000", "0x1F", "1e3"}) {
    CHECK(as(text, R"({"type": "integer"})") == text);
  }
  CHECK(as("1e3", R"({"type": "number"})") == 1000);
  CHECK(as("-0.25", R"({"type": "number"})") == -0.25);
  CHECK(as(".5", R"({"type": "number"})") == ".5");
}

TEST_CASE("typing: numbers that no double holds are the farthest one, or text") {
  const std::string digits = "-" + std::string(400, '9');
  const double farthest = std::numeric_limits<double>::max();
  CHECK(as("1e999", R"({"type": "number"})") == farthest);
  CHECK(as(digits, R"({"type": "integer"})") == -farthest);
  CHECK(as("[1e999]", R"({"type": "array"})")[0] == farthest);
  CHECK(as("1e999", R"({"type": ["number", "string"]})") == "1e999");
}

TEST_CASE("typing: what a schema allows only as a string is one") {
  const auto by = [](const std::string& text, const std::string& schema) {
    const Json document = Json::parse(schema);
    const Schema of(document);
    return Json::parse(typed_by(of, text, of.kinds(), Untyped::kText));
  };
  const char* const either =
      R"({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 5}]})";
  CHECK(by("7", either) == 7);
  CHECK(by("3", either) == "3");
  CHECK(by("1", R"({"enum": ["1", 2]})") == "1");
  CHECK(by("2", R"({"enum": ["1", 2]})") == 2);
  CHECK(by("9", R"({"enum": ["1", 2]})") == 9);  // neither fits: as without the schema
}

TEST_CASE("typing: booleans and null") {
  CHECK(as("True", R"({"type": "boolean"})") == true);
  CHECK(as("off", R"({"type": "boolean"})") == false);
  CHECK(as("maybe", R"({"type": "boolean"})") == "maybe");
  CHECK(as("None", R"({"anyOf": [{"type": "integer"}, {"type": "null"}]})") == nullptr);
  CHECK(as("3", R"({"anyOf": [{"type": "integer"}, {"type": "null"}]})") == 3);
  CHECK(as("3", R"({"type": ["string", "null"]})") == "3");
  CHECK(as("null", R"({"type": "string", "nullable": true})") == nullptr);
}

TEST_CASE("typing: objects and lists, as JSON or Python, else strings") {
  CHECK(as("{'a': [True, None]}", R"({"type": "object"})") ==
        Json::parse(R"({"a": [true, null]})"));
  CHECK(as("[1, \"x\"]", R"({"type": "array"})") == Json::parse(R"([1, "x"])"));
  CHECK(as("[1, 2", R"({"type": "array"})") == "[1, 2");
  CHECK(as("{\"a\": 1} x", R"({"type": "object"})") == "{\"a\": 1} x");
  CHECK(as("[1]", R"({"type": "object"})") == "[1]");
}

TEST_CASE("typing: what no schema tells is text or JSON, as the dialect has it") {
  CHECK(as("5", "{}") == "5");
  CHECK(as("5", "{}", Untyped::kJson) == 5);
  CHECK(as("['a', 1]", "{}", Untyped::kJson) == Json::parse(R"(["a", 1])"));
  CHECK(as("\"q\"", "{}", Untyped::kJson) == "q");
  CHECK(as("007", "{}", Untyped::kJson) == "007");
  CHECK(as("words, (more)", "{}", Untyped::kJson) == "words, (more)");
}

TEST_CASE("schemas: references, unions and circles") {
  const Json document =
      Json::parse(R"({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "integer"},
    "loop": {"$ref": "#/$defs/loop"}, "deep": {"anyOf": [{"$ref": "#/$defs/deep"}, {"type": "null"}]}},
    "allOf": [{"properties": {"x": {"$ref": "#/$defs/a"}, "y": {"$ref": "#/$defs/loop"},
      "z": {"$ref": "#/nowhere"}, "w": {"$ref": "#/$defs/deep"}, "v": {"$ref": "http://x"}}}],
    "additionalProperties": {"type": "boolean"}})");
  const Schema schema(document);
  CHECK(schema.property("x").kinds() == kInteger);
  CHECK(schema.property("y").kinds() == 0);
  CHECK(schema.property("z").kinds() == 0);
  CHECK(schema.property("w").kinds() == kNull);
  CHECK(schema.property("v").kinds() == 0);
  CHECK(schema.property("other").kinds() == kBoolean);
  CHECK(Schema().property("x").items().kinds() == 0);
}
