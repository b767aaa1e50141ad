// Random calls of a tool whose schema has all kinds of values. For tests.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "dialect/dialect.h"

namespace tandem::dialect {

inline Json sample_tools() {
  return Json::parse(R"([{"type": "function", "function": {"name": "put", "parameters": {
    "type": "object",
    "$defs": {"point": {"type": "object", "properties": {"k": {"type": "integer"}, "name": {"type": "string"}}}},
    "properties": {
      "path": {"type": "string"}, "body": {"type": "string"}, "n": {"type": "integer"},
      "ratio": {"type": "number"}, "on": {"type": "boolean"},
      "opt": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
      "tags": {"type": "array", "items": {"type": "string"}},
      "cfg": {"$ref": "#/$defs/point"},
      "rows": {"type": "array", "items": {"$ref": "#/$defs/point"}}},
    "required": ["path", "n"]}}},
   {"type": "function", "function": {"name": "ls", "parameters": {"type": "object", "properties": {}}}},
   {"type": "function", "function": {"name": "get_weather-2.now", "parameters": {"type": "object",
     "properties": {"city": {"type": "string"}}}}}])");
}

inline std::string random_string(std::mt19937& random) {
  static const std::vector<std::string> kWords = {"a",
                                                  " lead",
                                                  "trail ",
                                                  "line1\nline2\n",
                                                  "\n\nx",
                                                  "007",
                                                  "true",
                                                  "null",
                                                  "[1, 2",
                                                  "{\"a\": 1}",
                                                  "say \"hi\" \\ back\\",
                                                  "日本語 🎉",
                                                  "a<b>&c",
                                                  "</",
                                                  "tab\t",
                                                  "`code`",
                                                  "```\nx\n```\n",
                                                  "$key",
                                                  "1.50",
                                                  "it's",
                                                  "<par",
                                                  "\r\n",
                                                  "}",
                                                  "{{",
                                                  ",",
                                                  "ü"};
  std::string text;
  for (size_t i = random() % 4; i > 0; --i) text += kWords[random() % kWords.size()];
  return text;
}

inline Json random_point(std::mt19937& random) {
  Json point = Json::object();
  if (random() % 2 == 0) point["k"] = static_cast<int>(random() % 100) - 50;
  point["name"] = random_string(random);
  return point;
}

inline Call random_call(std::mt19937& random) {
  const size_t tool = random() % 6;
  if (tool == 0) return {.name = "ls"};
  if (tool == 1)
    return {.name = "get_weather-2.now", .arguments = {{"city", random_string(random)}}};
  Call call{.name = "put"};
  Json& args = call.arguments;
  args["path"] = random_string(random);
  args["n"] = static_cast<int64_t>(random()) * (random() % 2 == 0 ? 1 : -1000003);
  if (random() % 2 == 0) args["body"] = random_string(random);
  if (random() % 2 == 0) args["ratio"] = static_cast<double>(random() % 1000) / 8;
  if (random() % 2 == 0) args["on"] = random() % 2 == 0;
  if (random() % 2 == 0) args["opt"] = random() % 2 == 0 ? Json() : Json(7);
  if (random() % 2 == 0) {
    args["tags"] = Json::array();
    for (size_t i = random() % 3; i > 0; --i) args["tags"].push_back(random_string(random));
  }
  if (random() % 2 == 0) args["cfg"] = random_point(random);
  if (random() % 2 == 0) {
    args["rows"] = Json::array();
    for (size_t i = random() % 3; i > 0; --i) args["rows"].push_back(random_point(random));
  }
  return call;
}

}  // namespace tandem::dialect
