// The reference's recorded parses, and where ours differ.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <string>

#include "dialect/joined_test.h"

using namespace tandem::dialect;

namespace {

Json read_vectors() {
  std::ifstream in(std::string(TANDEM_SOURCE_DIR) + "/tests/vectors/golden_tool_parsers.json");
  return Json::parse(in);
}

/// What is right instead, as the list of calls or as null for text, and why.
struct Difference {
  const char* parser;
  const char* text;
  const char* calls;  // a JSON list; "text" when it is text
  const char* reason;
};

const Difference kDifferences[] = {
    {"json_tools", "[1, 2]", "text", "no call"},
    {"json_tools", "\"\"", "text", "no call"},
    {"json_tools", "{\"name\": \"mul\", \"arguments\": \"x\"}", "text", "arguments are an object"},
    {"qwen3_coder", "<function=put><parameter=n>4.5</parameter></function>",
     R"([{"name": "put", "arguments": {"n": "4.5"}}])", "a value that does not fit stays a string"},
    {"qwen3_coder", "<function=put><parameter=n>abc</parameter></function>",
     R"([{"name": "put", "arguments": {"n": "abc"}}])", "a value that does not fit stays a string"},
    {"qwen3_coder",
     "<function=a><parameter=x>1</parameter></function>\n<function=b><parameter=y>2</parameter></"
     "function>",
     R"([{"name": "a", "arguments": {"x": "1"}}, {"name": "b", "arguments": {"y": "2"}}])",
     "two functions are two calls"},
    {"qwen3_coder", "<function=put><parameter=path>line1\nline2\n</parameter></function> ",
     R"([{"name": "put", "arguments": {"path": "line1\nline2"}}])", "white space may follow"},
    {"gemma4", "call:a{x:bare}", R"([{"name": "a", "arguments": {"x": "bare"}}])",
     "a word without quotes is a string"},
    {"gemma4", "call:a{x:1", R"([{"name": "a", "arguments": {"x": 1}}])",
     "a call that was begun is closed"},
    {"function_gemma", "call:f{a:{b:1}}", R"([{"name": "f", "arguments": {"a": {"b": 1}}}])",
     "objects may be nested"},
    {"glm47", "{\"name\": \"mul\", \"arguments\": {\"a\": \"1\"}}",
     R"([{"name": "mul", "arguments": {"a": "1"}}])", "JSON says itself what a string is"},
    {"glm47", "mul some text", "text", "words are no arguments"},
    {"glm47", "", "text", "no call"},
    {"kimi_k2", "mul:0 <|tool_call_argument_begin|> {\"a\": ",
     R"([{"name": "mul", "arguments": {}, "id": "mul:0"}])", "arguments are always an object"},
    {"longcat", "no args", "text", "no call"},
    {"mistral", "mul[ARGS]{\"a\": ", R"([{"name": "mul", "arguments": {}}])",
     "a call that was begun is closed"},
    {"pythonic", "[f(1)]", "text", "an argument without a name would be lost"},
};

/// A string stays one, also if it says null.
bool is_null_string(const Json& vector) {
  return vector["parser"] == "qwen3_coder" && vector["tools"] == true &&
         vector["text"] == "<function=put><parameter=path>null</parameter></function>";
}

Json expected_calls(const Json& vector) {
  if (is_null_string(vector)) {
    return Json::parse(R"([{"name": "put", "arguments": {"path": "null"}}])");
  }
  for (const Difference& other : kDifferences) {
    if (vector["parser"] != other.parser || vector["text"] != other.text) continue;
    return other.calls == std::string("text") ? Json::array() : Json::parse(other.calls);
  }
  if (!vector.contains("result")) return Json::array();
  return vector["result"].is_array() ? vector["result"] : Json::array({vector["result"]});
}

std::string whole_text(const Json& vector) {
  const std::string text = vector["text"];
  if (text.starts_with(vector["start"].get<std::string>())) return text;
  return vector["start"].get<std::string>() + text + vector["end"].get<std::string>();
}

}  // namespace

TEST_CASE("vectors: calls are those of the reference but for its mistakes") {
  const Json golden = read_vectors();
  size_t compared = 0;
  for (const Json& vector : golden["cases"]) {
    const std::string text = whole_text(vector);
    CAPTURE(vector.dump());
    const Tools tools = vector["tools"] == true ? Tools(golden["tools"]) : Tools();
    const Joined seen = parse(rules_of(vector["parser"].get<std::string>(), tools), text);
    const Json calls = expected_calls(vector);
    ++compared;
    CHECK(seen.calls.size() == calls.size());
    if (seen.calls.size() != calls.size()) continue;
    for (size_t i = 0; i < calls.size(); ++i) {
      CHECK(seen.calls[i].name == calls[i]["name"]);
      CHECK(Json::parse(seen.calls[i].arguments) == calls[i].value("arguments", Json::object()));
      CHECK(seen.calls[i].id == calls[i].value("id", ""));
    }
    const bool is_whole_text =
        calls.empty() && vector["end"] != "" && vector["parser"] != "minicpm5";
    if (is_whole_text) CHECK(seen.text == text);
  }
  CHECK(compared == 168);
}
