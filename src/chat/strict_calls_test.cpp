// Strict tools in every dialect: what is drawn under the grammar of their calls fits their schema,
// or the schema is refused with the keyword named.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

#include "chat/grammar_walk_test.h"
#include "chat/testdata/schema_check.h"
#include "dialect/grammar.h"
#include "dialect/joined_test.h"

namespace tandem::chat {
namespace {

using dialect::Dialect;
using Json = dialect::Json;

/// A schema of a value, and the keywords for which it may be refused; none: never.
struct StrictCase {
  const char* schema;
  std::vector<std::string> may_name = {};
};

const std::vector<StrictCase>& strict_cases() {
  static const std::vector<StrictCase> kAll = {
      {R"({"const": "C"})"},
      {R"({"type": "string", "const": "C"})"},
      {R"({"const": 7})"},
      {R"({"const": null})"},
      {R"({"const": {"a": [1, "x"], "b": {"c": true}}})"},
      {R"({"const": [1, "x", null]})"},
      {R"({"enum": ["a b", "c"]})"},
      {R"({"enum": [" a", "b\n", "</x>", ""]})"},
      {R"({"enum": ["1", 1, null]})"},
      {R"({"enum": ["1", 2]})"},
      {R"({"enum": [{"a": 1}, [2], "t"]})", {"type"}},
      {R"({"type": ["string", "null"], "enum": ["a", null]})"},
      {R"({"enum": [1, 5, 9], "minimum": 3, "maximum": 6})"},
      {R"({"type": ["integer", "null"], "minimum": 1, "maximum": 2})"},
      {R"({"type": ["string", "null"]})"},
      {R"({"type": ["string", "integer"], "minLength": 1, "maxLength": 3})"},
      {R"({"type": ["string", "boolean"], "pattern": "^[a-z]{2,5}$"})"},
      {R"({"type": "integer", "minimum": 3, "maximum": 5})"},
      {R"({"type": "number", "minimum": 0.5, "maximum": 0.75})"},
      {R"({"type": "integer", "multipleOf": 5})"},
      {R"({"type": "boolean"})"},
      {R"({"type": "string", "minLength": 2, "maxLength": 4})"},
      {R"({"type": "string", "pattern": "^[A-Z]{2,3}$"})"},
      {R"({"type": "string", "pattern": "^(?:[A-Z]{2}|x)$"})"},
      {R"({"type": "string", "pattern": "q", "maxLength": 5})"},
      {R"({"type": "string", "pattern": "^ab|yz$", "maxLength": 5})"},
      {R"({"type": "string", "format": "date"})"},
      {R"({"type": "string", "format": "uuid"})"},
      {R"({"type": "string", "format": "ipv4"})"},
      {R"({"type": "string", "format": "uri", "maxLength": 40})"},
      {R"({"type": "string", "format": "email", "maxLength": 40})"},
      {R"({"anyOf": [{"type": "integer", "minimum": 5, "maximum": 9}, {"enum": ["x"]}]})"},
      {R"({"anyOf": [{"const": "p"}, {"const": "q"}]})"},
      {R"({"anyOf": [{"type": "string", "maxLength": 1}, {"type": "string", "pattern": "^zz"}]})"},
      {R"({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 5}]})"},
      {R"({"oneOf": [{"type": "string", "const": "x"}, {"type": "integer", "maximum": 9}]})"},
      {R"({"oneOf": [{"type": "integer"}, {"type": "integer", "minimum": 5}]})", {"oneOf"}},
      {R"({"allOf": [{"type": "string"}, {"enum": ["p", "q"]}]})"},
      {R"({"allOf": [{"type": "integer"}, {"minimum": 2, "maximum": 4}]})"},
      {R"({"type": "array", "items": {"enum": ["x"]}, "minItems": 2, "maxItems": 3})"},
      {R"({"type": "array", "items": {"type": "integer"}, "maxItems": 0})"},
      {R"({"type": "array", "prefixItems": [{"type": "integer", "maximum": 9}, {"type": "boolean"},
           {"enum": ["u", "v"]}], "items": false, "minItems": 2})"},
      {R"({"type": "array", "prefixItems": [{"type": "string", "maxLength": 2}],
           "items": {"type": "null"}, "minItems": 2, "maxItems": 3})"},
      {R"({"type": "array", "items": {"type": "integer"}, "uniqueItems": true})", {"uniqueItems"}},
      {R"({"type": "object", "properties": {}, "additionalProperties": false})"},
      {R"({"type": "object", "properties": {"x": {"const": "C"}, "y": {"type": "integer",
           "minimum": 1, "maximum": 3}}, "required": ["y"], "additionalProperties": false})"},
      {R"({"type": "object", "additionalProperties": {"type": "integer", "maximum": 9},
           "minProperties": 1, "maxProperties": 2})",
       {"minProperties"}},
      {R"({"type": "object", "properties": {"x": {"type": "boolean"}, "y": {"type": "boolean"}},
           "minProperties": 1, "maxProperties": 1, "additionalProperties": false})",
       {"minProperties", "maxProperties"}},
      {R"({"type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["z"],
           "additionalProperties": {"type": "null"}})"},
      {R"({"type": "object", "patternProperties": {"^x[0-9]$": {"type": "boolean"}},
           "additionalProperties": false, "minProperties": 1, "maxProperties": 1})",
       {"patternProperties", "minProperties"}},
      {R"({"allOf": [{"type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["x"]},
           {"properties": {"x": {"const": true}, "y": {"const": 1}}, "additionalProperties": false}]})"},
      {R"({"oneOf": [
           {"type": "object", "properties": {"k": {"const": "a"}, "n": {"type": "integer",
             "maximum": 9}}, "required": ["k", "n"], "additionalProperties": false},
           {"type": "object", "properties": {"k": {"const": "b"}, "n": {"type": "string",
             "maxLength": 2}}, "required": ["k", "n"], "additionalProperties": false}]})",
       {"oneOf", "type"}},
      {R"({"type": "object", "properties": {"x": {"type": "boolean"}},
           "dependentRequired": {"x": ["y"]}})",
       {"dependentRequired"}},
      {R"({"type": "string", "not": {"const": "a"}})", {"not"}},
      {R"({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"type": "null"}})",
       {"if", "then", "else"}},
      {R"({"type": "object", "propertyNames": {"maxLength": 2}})", {"propertyNames"}},
      {R"({"minLength": 2, "maxLength": 4})", {"type"}},
      {R"({"type": "string", "format": "uri-reference"})", {"format"}},
      {R"x({"type": "string", "pattern": "a(^b|c$)"})x", {"pattern"}},
      {R"({"type": ["string", "number"], "exclusiveMinimum": 3, "pattern": "x"})",
       {"exclusiveMinimum"}},
      {R"({"type": "string"})"},
      {R"({"type": ["number", "null"]})"},
      {R"({"type": "object"})"},
      {R"({"type": ["array", "null"], "items": {"type": ["integer", "boolean"]}, "maxItems": 3})"},
      {R"({"type": "array", "items": {"type": "array", "items": {"enum": ["x", "yy"]},
           "minItems": 1}, "maxItems": 2})"},
      {"{}"}};
  return kAll;
}

/// The same value in other places of a schema.
const std::vector<const char*>& strict_places() {
  static const std::vector<const char*> kAll = {
      "{}",
      R"({{"$ref": "#/$defs/s"}})",
      R"({{"type": "object", "properties": {{"w": {}}}, "required": ["w"],
           "additionalProperties": false}})",
      R"({{"type": "array", "items": {}, "minItems": 1, "maxItems": 2}})",
      R"({{"anyOf": [{{"$ref": "#/$defs/s"}}, {{"type": "null"}}]}})",
      R"({{"anyOf": [{}, {{"type": "string", "pattern": "^[k-m]{{2}}$"}}]}})"};
  return kAll;
}

/// Parameters with a value of a case, and what they may be refused for.
struct DrawnTool {
  Json parameters;
  std::vector<std::string> may_name;
};

/// The case somewhere, and at times one more beside it.
DrawnTool draw_tool(const StrictCase& strict, std::mt19937& random) {
  const auto& places = strict_places();
  const char* place = places[random() % places.size()];
  DrawnTool drawn;
  drawn.may_name = strict.may_name;
  if (place == places.back()) {
    // Beside endless many strings text is not told from other values.
    for (const char* name : {"minimum", "maximum", "multipleOf", "type"}) {
      drawn.may_name.emplace_back(name);
    }
  }
  const std::string value = fmt::format(fmt::runtime(place), strict.schema);
  drawn.parameters = {{"type", "object"},
                      {"properties", {{"v", Json::parse(value)}}},
                      {"required", {"v"}},
                      {"additionalProperties", false},
                      {"$defs", {{"s", Json::parse(strict.schema)}}}};
  if (random() % 3 == 0) {
    const StrictCase& other = strict_cases()[random() % strict_cases().size()];
    drawn.parameters["properties"]["u"] = Json::parse(other.schema);
    drawn.may_name.insert(drawn.may_name.end(), other.may_name.begin(), other.may_name.end());
  }
  return drawn;
}

Json strict_tool(const Json& parameters) {
  return Json::array(
      {{{"type", "function"},
        {"function", {{"name", "put"}, {"strict", true}, {"parameters", parameters}}}}});
}

std::vector<std::string> closing_words(const Dialect& dialect) {
  std::vector<std::string> words = dialect.syntax->literals();
  words.insert(words.end(), {"\"", "}", "]", "\n</parameter>", dialect.layout.quote + "</v>",
                             dialect.layout.quote + "</w>", dialect.layout.quote + "</item>",
                             dialect.layout.quote, "]]>"});
  std::erase(words, std::string());
  return words;
}

/// Draws and reads back; how many ended.
int check_walks(const GrammarWalk& walk,
                const Dialect& dialect,
                const tb_matcher& start,
                const dialect::Tools& tools,
                const Json& parameters,
                int rounds) {
  const SchemaCheck schema(nlohmann::json::parse(parameters.dump()));
  std::mt19937 random(41);
  int complete = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto matcher = text::bridge::clone(start);
    REQUIRE(matcher.has_value());
    const std::string text = walk.draw(**matcher, random, closing_words(dialect));
    if (text == GrammarWalk::kEndless) continue;
    ++complete;
    CAPTURE(text);
    const dialect::Joined seen =
        dialect::parse(dialect::rules_of(dialect.name, tools, false), text);
    CHECK(seen.calls.size() == 1);
    if (seen.calls.size() != 1) return complete;
    CAPTURE(seen.calls[0].arguments);
    const bool fit = schema.fits(nlohmann::json::parse(seen.calls[0].arguments));
    CHECK(fit);
    CHECK(seen.calls[0].complete);
    if (!fit) return complete;
  }
  return complete;
}

void check_refusal(const Error& error, const DrawnTool& drawn) {
  CAPTURE(error.message);
  CHECK(error.code == ErrorCode::kInvalid);
  CHECK(std::ranges::any_of(drawn.may_name, [&](const std::string& name) {
    return error.message.find(name) != std::string::npos;
  }));
}

}  // namespace

TEST_CASE("strict calls: arguments fit the schema in every dialect, or it is refused by name") {
  const GrammarWalk walk;
  std::mt19937 random(5);
  int complete = 0;
  int refused = 0;
  for (const StrictCase& strict : strict_cases()) {
    for (const Dialect& dialect : dialect::all()) {
      const DrawnTool drawn = draw_tool(strict, random);
      const dialect::Tools tools(strict_tool(drawn.parameters));
      CAPTURE(drawn.parameters.dump());
      CAPTURE(dialect.name);
      dialect::GrammarRequest request = walk.request(tools);
      request.parallel = false;
      const auto source = call_grammar(dialect, request);
      if (!source) {
        ++refused;
        CHECK(source.error().message.find(dialect.name) != std::string::npos);
        CHECK(source.error().message.find("put") != std::string::npos);
        check_refusal(source.error(), drawn);
        continue;
      }
      CAPTURE(*source);
      const auto matcher = walk.compile(*source);
      if (!matcher) {
        ++refused;
        check_refusal(matcher.error(), drawn);
        continue;
      }
      const bool is_json = dialect.layout.spelling == dialect::Spelling::kJson;
      complete += check_walks(walk, dialect, **matcher, tools, drawn.parameters, is_json ? 1 : 3);
    }
  }
  CHECK(complete > 1000);
  CHECK(refused > 100);
}

}  // namespace tandem::chat
