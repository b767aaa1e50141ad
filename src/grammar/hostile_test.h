// Grammars for tests that are wrong, not offered, or made to cost, and the largest that are taken.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gen/request.h"

namespace tandem::grammar {

using Json = nlohmann::ordered_json;
using Kind = gen::GrammarKind;

inline gen::Grammar json(const Json& schema) {
  return {.kind = Kind::kJsonSchema, .source = schema.dump()};
}

inline std::string nested(size_t depth, const std::string& open, const std::string& close) {
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += open;
  text += "1";
  for (size_t i = 0; i < depth; ++i) text += close;
  return text;
}

inline Json object_of(int members, bool are_required) {
  Json schema = {{"type", "object"}, {"additionalProperties", false}};
  for (int i = 0; i < members; ++i) {
    const std::string name = "p" + std::to_string(i);
    schema["properties"][name] = {{"type", "string"}};
    if (are_required) schema["required"].push_back(name);
  }
  return schema;
}

/// Alternatives that one member tells apart.
inline Json objects(int count) {
  Json list = Json::array();
  for (int i = 0; i < count; ++i) {
    list.push_back({{"type", "object"},
                    {"properties", {{"k", {{"const", i}}}, {"x", {{"type", "integer"}}}}},
                    {"required", {"k"}},
                    {"additionalProperties", false}});
  }
  return list;
}

/// Alternatives of optional members: each has several ways to begin.
inline Json optional_objects(int count) {
  Json list = Json::array();
  for (int i = 0; i < count; ++i) {
    Json schema = {{"type", "object"}, {"additionalProperties", false}};
    for (int at = 0; at < 12; ++at) {
      schema["properties"]["a" + std::to_string(i) + "b" + std::to_string(at)] = Json::object();
    }
    list.push_back(schema);
  }
  return list;
}

/// Alternatives with the same members, none of which must be there.
inline Json alike_objects(int count, int members) {
  Json list = Json::array();
  for (int i = 0; i < count; ++i) {
    Json schema = {{"type", "object"}};
    for (int at = 0; at < members; ++at) {
      schema["properties"]["k" + std::to_string(at)] = {{"type", "string"}};
    }
    list.push_back(schema);
  }
  return list;
}

/// Alternatives that a member tells apart which may be missing.
inline Json vague_objects(int count) {
  Json list = Json::array();
  for (int i = 0; i < count; ++i) {
    list.push_back(
        {{"type", "object"},
         {"properties", {{"k" + std::to_string(i), {{"type", "string"}}}, {"t", {{"const", i}}}}}});
  }
  return list;
}

inline Json multiples(int of, double least, double most) {
  return {{"type", "integer"}, {"multipleOf", of}, {"minimum", least}, {"maximum", most}};
}

/// References that lead so many levels deep.
inline Json chain(int length) {
  Json schema = {{"$ref", "#/$defs/d0"}};
  for (int i = 0; i < length; ++i) {
    schema["$defs"]["d" + std::to_string(i)]["properties"]["n"]["$ref"] =
        "#/$defs/d" + std::to_string(i + 1);
  }
  schema["$defs"]["d" + std::to_string(length)] = {{"type", "string"}};
  return schema;
}

inline std::string alternatives(int count) {
  std::string source = "start: \"a\"";
  for (int i = 1; i < count; ++i) source += " | \"k" + std::to_string(i) + "\"";
  return source + "\n";
}

/// Rules of two parts each, all of which may be empty.
inline std::string doubled_rules(int levels) {
  std::string source = "start: r0\n";
  for (int level = 0; level < levels; ++level) {
    const std::string below = "r" + std::to_string(level + 1);
    source += "r" + std::to_string(level) + ": " + below + " " + below + " |\n";
  }
  return source + "r" + std::to_string(levels) + ": \"a\"\n";
}

/// Terminals that double the ones below tenfold.
inline std::string terminals(int levels) {
  std::string source = "start: T0\n";
  for (int level = 0; level < levels; ++level) {
    source += "T" + std::to_string(level) + ":";
    for (int i = 0; i < 10; ++i) source += " T" + std::to_string(level + 1);
    source += "\n";
  }
  return source + "T" + std::to_string(levels) + ": /[a-z]+x/\n";
}

inline std::vector<gen::Grammar> hostile() {
  Json intersected = {{"allOf", Json::array()}};
  Json patterned = {{"type", "object"}};
  for (int i = 0; i < 40; ++i) {
    const std::string pattern = "^.*" + std::to_string(i) + ".*$";
    intersected["allOf"].push_back({{"type", "string"}, {"pattern", pattern}});
  }
  for (int i = 0; i < 5000; ++i) {
    patterned["properties"]["p" + std::to_string(i)] = {
        {"type", "string"}, {"pattern", "^[a-z]{3,9}" + std::to_string(i) + "$"}};
  }
  Json required = {{"type", "object"}, {"required", Json::array()}};
  for (int i = 0; i < 60'000; ++i) required["required"].push_back("r" + std::to_string(i));
  const auto schema = [](const std::string& source) {
    return gen::Grammar{.kind = Kind::kJsonSchema, .source = source};
  };
  return {
      schema(R"({"type": "string", "pattern": "^+[a-z]$"})"),
      schema(R"({"type": "string", "pattern": "(?<=x)y"})"),
      schema(R"({"type": "string", "pattern": ")" + std::string(5000, '(') +
             std::string(5000, ')') + R"("})"),
      schema(R"({"$ref": "#"})"),
      schema(R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})"),
      schema(R"({"properties": {"foo": "bar"}})"),
      schema(R"({"not": {"type": "string"}})"),
      schema(R"({"type": "nonsense"})"),
      schema("{"),
      schema("[]"),
      schema(nested(3000, R"({"items":)", "}")),
      schema(nested(3000, "[", "]")),
      json(intersected),
      json(patterned),
      json(object_of(5000, true)),
      json(object_of(2000, false)),
      json(object_of(5000, false)),
      json({{"anyOf", objects(3000)}}),
      json({{"anyOf", alike_objects(40, 100)}}),
      json({{"oneOf", objects(3000)}}),
      json({{"type", "array"}, {"items", {{"anyOf", optional_objects(300)}}}}),
      json(chain(3000)),  // deeper than the compiler's stack
      json(required),     // the same
      json({{"type", "integer"}, {"multipleOf", -3}}),
      json({{"type", "integer"}, {"multipleOf", 107972737}}),
      json({{"type", "number"}, {"multipleOf", 1e30}}),
      json({{"allOf", {{{"multipleOf", 97}}, {{"multipleOf", 101}}, {{"multipleOf", 103}}}}}),
      json({{"type", "integer"}, {"minimum", 5}, {"maximum", 3}}),
      schema(R"({"type": "string", "pattern": "(a{1000}){1000}"})"),
      {.kind = Kind::kRegex, .source = "("},
      {.kind = Kind::kRegex, .source = "[^\\x00-\\U0010ffff]"},
      {.kind = Kind::kRegex, .source = "((a{900}){900}){900}"},
      {.kind = Kind::kRegex, .source = std::string(5000, '(') + std::string(5000, ')')},
      {.kind = Kind::kRegex, .source = std::string(2 << 20, 'a')},
      {.kind = Kind::kAmbiguousLark, .source = "start: a*\na: b*\nb: c*\nc: \"x\"*\n"},
      {.kind = Kind::kAmbiguousLark, .source = "start: s\ns: s s s | \"a\" |\n"},
      {.kind = Kind::kAmbiguousLark, .source = "start: (line?)*\nline: /[a-z]/\n"},
      {.kind = Kind::kAmbiguousLark, .source = doubled_rules(30)},
      {.kind = Kind::kLark, .source = "start: missing"},
      {.kind = Kind::kLark, .source = "start: start \"x\" | start\n"},
      {.kind = Kind::kLark, .source = "start: " + nested(60'000, "(", ")")},
      {.kind = Kind::kLark,
       .source = "start: /\"/ %json {\"x\":" + nested(300'000, "[", "]") + "}"},
      {.kind = Kind::kLark, .source = "start: /\"/ " + nested(300'000, "(", ")")},
      {.kind = Kind::kLark, .source = "start: /a\n\"/ " + nested(300'000, "(", ")")},
      {.kind = Kind::kLark, .source = "start: %json\n" + chain(3000).dump()},
      {.kind = Kind::kRegex, .source = "\"" + nested(300'000, "(", ")")},
      {.kind = Kind::kLark, .source = "root ::= \"a\""},
      {.kind = Kind::kLark, .source = "start: /((x{900}){900}){9}/"},
      {.kind = Kind::kLark, .source = "start: A\nA: B{1000}\nB: C{1000}\nC: \"x\" \"y\"{1000}\n"},
      {.kind = Kind::kLark, .source = terminals(9)},
      {.kind = Kind::kLark, .source = alternatives(50'000)},
      {.kind = Kind::kLark, .source = "start: %json " + intersected.dump()},
      {.kind = Kind::kLark, .source = "start: %json " + chain(3000).dump()},
  };
}

}  // namespace tandem::grammar
