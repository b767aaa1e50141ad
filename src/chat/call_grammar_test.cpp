// Grammars of forced calls: the bridge takes them for every dialect, and what is drawn under their
// masks is read back as calls that fit.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "chat/grammar_walk_test.h"
#include "dialect/grammar.h"
#include "dialect/joined_test.h"
#include "dialect/random_call_test.h"
#include "grammar/source_limits.h"

namespace tandem::dialect {
namespace {

using Ids = std::vector<uint32_t>;

/// Small, so that random draws end soon.
Json small_tools() {
  return Json::parse(R"([{"type": "function", "function": {"name": "put", "parameters": {
    "type": "object", "additionalProperties": false,
    "properties": {"kind": {"enum": ["a", "b"]}, "n": {"type": "integer", "minimum": 1, "maximum": 9},
                   "on": {"type": "boolean"}},
    "required": ["kind", "n"]}}}])");
}

using Vocabulary = chat::GrammarWalk;

TEST_CASE("call grammar: the bridge compiles that of every dialect, with thinking and without") {
  const Vocabulary vocabulary;
  const Tools tools(sample_tools());
  for (const Dialect& dialect : all()) {
    for (const bool thinks : {false, true}) {
      GrammarRequest request = vocabulary.request(tools);
      if (thinks) request.thinking = ThinkingMarkers{.start = "<think>", .end = "</think>"};
      request.in_thinking = thinks;
      const std::string source = *call_grammar(dialect, request);
      const auto matcher = vocabulary.compile(source);
      CAPTURE(dialect.name);
      CAPTURE(source);
      CHECK_MESSAGE(matcher.has_value(), (matcher ? "" : matcher.error().message));
    }
  }
}

TEST_CASE("call grammar: what is drawn under it is a call of the tool, which fits its schema") {
  const Vocabulary vocabulary;
  const Tools tools(small_tools());
  std::mt19937 random(23);
  for (const Dialect& dialect : all()) {
    GrammarRequest request = vocabulary.request(tools);
    request.parallel = false;
    const std::string source = *call_grammar(dialect, request);
    CAPTURE(dialect.name);
    CAPTURE(source);
    for (int round = 0; round < 3; ++round) {
      const auto matcher = vocabulary.compile(source);
      REQUIRE_MESSAGE(matcher.has_value(), (matcher ? "" : matcher.error().message));
      const std::string text = vocabulary.draw(**matcher, random);
      if (text == "endless") continue;  // white space or digits without end
      CAPTURE(text);
      const Joined seen = dialect::parse(rules_of(dialect.name, tools, false), text);
      REQUIRE(seen.calls.size() == 1);
      CHECK(seen.calls[0].name == "put");
      CHECK(seen.text.empty());
      const Json arguments = Json::parse(seen.calls[0].arguments);
      CHECK((arguments["kind"] == "a" || arguments["kind"] == "b"));
      CHECK(arguments["n"].is_number_integer());
    }
  }
}

/// So deep as dialects that do not write JSON bind values.
bool is_tree(const Json& node, int depth = 4) {
  if (depth == 0) return true;
  if (!node.is_object() || node.size() > 2 || !node.contains("n")) return false;
  return (node["n"] == 1 || node["n"] == 2) &&
         (!node.contains("child") || is_tree(node["child"], depth - 1));
}

TEST_CASE("call grammar: a schema that refers to all of itself binds as deep as it is drawn") {
  const Vocabulary vocabulary;
  const Tools tools(
      Json::parse(R"([{"type": "function", "function": {"name": "tree", "parameters": {
    "type": "object", "additionalProperties": false,
    "properties": {"n": {"enum": [1, 2]}, "child": {"$ref": "#"}}, "required": ["n"]}}}])"));
  std::mt19937 random(29);
  int complete = 0;
  for (const Dialect& dialect : all()) {
    GrammarRequest request = vocabulary.request(tools);
    request.parallel = false;
    const std::string source = *call_grammar(dialect, request);
    CAPTURE(dialect.name);
    CAPTURE(source);
    CHECK(grammar::check_source({.kind = gen::GrammarKind::kLark, .source = source}));
    for (int round = 0; round < 6; ++round) {
      const auto matcher = vocabulary.compile(source);
      REQUIRE_MESSAGE(matcher.has_value(), (matcher ? "" : matcher.error().message));
      const std::string text = vocabulary.draw(**matcher, random);
      if (text == "endless") continue;
      ++complete;
      CAPTURE(text);
      const Joined seen = dialect::parse(rules_of(dialect.name, tools, false), text);
      REQUIRE(seen.calls.size() == 1);
      CHECK(seen.calls[0].name == "tree");
      CHECK(is_tree(Json::parse(seen.calls[0].arguments)));
    }
  }
  CHECK(complete > static_cast<int>(all().size()));
}

/// Text that the grammar takes, and after which the answer may end.
bool takes(const Vocabulary& vocabulary, const std::string& source, const std::string& text) {
  const auto matcher = vocabulary.compile(source);
  REQUIRE_MESSAGE(matcher.has_value(), (matcher ? "" : matcher.error().message));
  const auto ids = *vocabulary.tokenizer.encode(text, false);
  return text::bridge::consume(**matcher, Ids(ids.begin(), ids.end())) &&
         *text::bridge::may_end(**matcher);
}

TEST_CASE("call grammar: prose with calls in it compiles and is free in every dialect") {
  const Vocabulary vocabulary;
  const Tools tools(sample_tools());
  for (const Dialect& dialect : all()) {
    GrammarRequest request = vocabulary.request(tools);
    request.thinking = ThinkingMarkers{.start = "<think>", .end = "</think>"};
    const std::string source = *open_grammar(dialect, request);
    CAPTURE(dialect.name);
    CAPTURE(source);
    const bool has_messages = dialect.syntax->owns_answer();
    const std::string head = has_messages ? "<|channel|>final<|message|>" : "";
    for (const char* prose : {"the end, hello", "a {\"name\": \"put\"} b", "{\"a\": [1, 2]}",
                              "{\"name\": \"Ann\", \"n\": 1}"}) {
      CAPTURE(prose);
      CHECK(takes(vocabulary, source, head + prose));
    }
  }
}

TEST_CASE("call grammar: in free prose calls of every dialect are bound, and read back") {
  const Vocabulary vocabulary;
  Json list = small_tools();
  list[0]["function"]["strict"] = true;
  const Tools tools(list);
  const Json good{{"kind", "a"}, {"n", 3}};
  const Json bad{{"kind", "c"}, {"n", 3}};
  for (const Dialect& dialect : all()) {
    GrammarRequest request = vocabulary.request(tools);
    request.parallel = false;
    const std::string source = *open_grammar(dialect, request);
    CAPTURE(dialect.name);
    CAPTURE(source);
    const auto written = [&](const Json& arguments) {
      const Call call{.name = "put",
                      .id = dialect.layout.id.empty() ? "abcdefghi" : "",
                      .arguments = arguments};
      std::string text = render(dialect.layout, {&call, 1});
      if (text.starts_with(dialect.layout.in_prompt))
        text.erase(0, dialect.layout.in_prompt.size());
      if (text.ends_with(dialect.layout.at_end)) {
        text.resize(text.size() - dialect.layout.at_end.size());
      }
      return text;
    };
    const std::string text = written(good);
    CAPTURE(text);
    CHECK(takes(vocabulary, source, text));
    CHECK_FALSE(takes(vocabulary, source, written(bad)));
    const Joined seen = dialect::parse(rules_of(dialect.name, tools, false), text);
    REQUIRE(seen.calls.size() == 1);
    CHECK(Json::parse(seen.calls[0].arguments) == good);
    const std::string mark = dialect.layout.mark_after_text;
    const bool has_messages = dialect.syntax->owns_answer();
    const std::string before = has_messages
                                   ? "<|channel|>commentary<|message|>So.<|end|><|start|>assistant"
                                   : "So. " + mark;
    CHECK(takes(vocabulary, source, before + text));
    CHECK_FALSE(takes(vocabulary, source, before + written(bad)));
  }
}

TEST_CASE("call grammar: constants, lists and their unions bind in every dialect") {
  const Vocabulary vocabulary;
  std::mt19937 random(31);
  size_t complete = 0;
  const std::pair<const char*, std::vector<Json>> cases[] = {
      {R"({"const": "C"})", {"C"}},
      {R"({"$ref": "#/$defs/c"})", {"C"}},
      {R"({"anyOf": [{"const": "p"}, {"const": "q"}]})", {"p", "q"}},
      {R"({"allOf": [{"type": "string"}, {"enum": ["p", "q"]}]})", {"p", "q"}},
      {R"({"enum": ["a", 3, null]})", {"a", 3, nullptr}},
      {R"({"type": ["string", "null"], "enum": ["a", null]})", {"a", nullptr}},
      {R"({"type": ["integer", "null"], "minimum": 1, "maximum": 2})", {1, 2, nullptr}},
      {R"({"type": "array", "items": {"enum": ["x"]}, "minItems": 2, "maxItems": 3})",
       {Json::array({"x", "x"}), Json::array({"x", "x", "x"})}},
      {R"({"type": "object", "properties": {}, "additionalProperties": false})", {Json::object()}}};
  for (const auto& [value, allowed] : cases) {
    const Tools tools(Json::parse(
        fmt::format(R"([{{"type": "function", "function": {{"name": "put", "strict": true,
          "parameters": {{"type": "object", "properties": {{"v": {}}}, "required": ["v"],
          "additionalProperties": false, "$defs": {{"c": {{"const": "C"}}}}}}}}}}])",
                    value)));
    for (const Dialect& dialect : all()) {
      GrammarRequest request = vocabulary.request(tools);
      request.parallel = false;
      const std::string source = *call_grammar(dialect, request);
      CAPTURE(dialect.name);
      CAPTURE(source);
      for (int round = 0; round < 3; ++round) {
        const auto matcher = vocabulary.compile(source);
        REQUIRE_MESSAGE(matcher.has_value(), (matcher ? "" : matcher.error().message));
        const std::string text = vocabulary.draw(**matcher, random);
        if (text == "endless") continue;
        ++complete;
        CAPTURE(text);
        const Joined seen = dialect::parse(rules_of(dialect.name, tools, false), text);
        REQUIRE(seen.calls.size() == 1);
        const Json got = Json::parse(seen.calls[0].arguments);
        CAPTURE(got.dump());
        CHECK(got.size() == 1);
        CHECK(std::ranges::find(allowed, got.value("v", Json("missing"))) != allowed.end());
      }
    }
  }
  CHECK(complete > std::size(cases) * all().size());
}

TEST_CASE("call grammar: beside a form calls of loose tools have values of every type") {
  const Vocabulary vocabulary;
  const Tools tools = Tools(sample_tools()).loosened();
  const Json form{{"type", "boolean"}};
  const Call call = {.name = "put",
                     .id = "",
                     .arguments = {{"path", "a \"b\""},
                                   {"n", 3},
                                   {"ratio", 1.5},
                                   {"on", true},
                                   {"tags", {"x", "y"}},
                                   {"cfg", {{"k", 1}, {"name", "z"}}}}};
  const Call free = {.name = "get_weather-2.now", .id = "", .arguments = {{"city", "Ulm"}}};
  for (const Dialect& dialect : all()) {
    const std::string source = *text_grammar(dialect, vocabulary.request(tools),
                                             {.expression = json_expression(form), .schema = form});
    CAPTURE(dialect.name);
    CAPTURE(source);
    for (Call each : {call, free}) {
      if (dialect.layout.id.empty()) each.id = "abcdefghi";
      std::string text = render(dialect.layout, {&each, 1});
      if (text.starts_with(dialect.layout.in_prompt))
        text.erase(0, dialect.layout.in_prompt.size());
      if (text.ends_with(dialect.layout.at_end)) {
        text.resize(text.size() - dialect.layout.at_end.size());
      }
      CAPTURE(text);
      CHECK(takes(vocabulary, source, text));
      const Joined seen = dialect::parse(rules_of(dialect.name, tools, false), text);
      REQUIRE(seen.calls.size() == 1);
      // Whatever the order of keys.
      CHECK(nlohmann::json::parse(seen.calls[0].arguments) == nlohmann::json(each.arguments));
    }
  }
}

TEST_CASE("call grammar: other ways to begin a call are no free text") {
  const Vocabulary vocabulary;
  const Tools tools(small_tools());
  const auto refuses = [&](const char* dialect, const std::string& text) {
    CAPTURE(text);
    CHECK_FALSE(takes(vocabulary, *open_grammar(*find(dialect), vocabulary.request(tools)), text));
  };
  refuses("llama3", "{\"name\": \"put\", \"parameters\": {}}");
  refuses("llama3", " { \"parameters\": {}, \"name\" : \"put\"}");
  refuses("llama3", "{\"type\": \"function\", \"function\": {\"name\": \"put\"}}");
  refuses("llama3", "<|python_tag|>put.call(kind=\"c\")");
  refuses("generic", "x <tool_call>put<arg_key>kind</arg_key><arg_value>c</arg_value></tool_call>");
  refuses("generic", "x [TOOL_CALLS][{\"name\": \"put\", \"arguments\": {}}]");
  refuses("gpt_oss", " to=functions.put<|channel|>commentary<|message|>{}");
  refuses("gpt_oss", "<|channel|>commentary to=functions.put<|message|>{}");
  const std::string source = *open_grammar(*find("gpt_oss"), vocabulary.request(tools));
  CHECK(takes(vocabulary, source,
              "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary "
              "to=functions.put <|constrain|>json<|message|>{\"kind\": \"a\", \"n\": 3}"));
}

TEST_CASE("call grammar: where calls are JSON, JSON of a form may begin as they do") {
  const Vocabulary vocabulary;
  const Tools tools(small_tools());
  const Json form = Json::parse(R"({"type": "object", "additionalProperties": false,
    "$defs": {"on": {"type": "boolean"}},
    "properties": {"name": {"type": "string"}, "on": {"$ref": "#/$defs/on"}},
    "required": ["name", "on"]})");
  const std::string source = *text_grammar(*find("llama3"), vocabulary.request(tools),
                                           {.expression = json_expression(form), .schema = form});
  CAPTURE(source);
  CHECK(takes(vocabulary, source, "{\"name\": \"Ann\", \"on\": true}"));
  CHECK(takes(vocabulary, source, "{\"name\": \"put\", \"on\": true}"));
  CHECK(takes(vocabulary, source,
              "{\"name\": \"put\", \"parameters\": {\"kind\": \"a\", \"n\": 3}}"));
  CHECK(takes(vocabulary, source,
              "<|python_tag|>{\"name\": \"put\", \"parameters\": {\"kind\": \"a\", \"n\": 3}}"));
  CHECK_FALSE(takes(vocabulary, source, "{\"name\": \"put\", \"parameters\": {\"kind\": \"c\"}}"));
  CHECK_FALSE(takes(vocabulary, source, "{\"name\": \"Ann\", \"on\": 1}"));
  CHECK_FALSE(takes(vocabulary, source, "hello"));
}

TEST_CASE("call grammar: a named tool is the only one") {
  const Tools tools(sample_tools());
  GrammarRequest request{.tools = tools, .only = {"ls"}};
  const std::string source = *call_grammar(*find("json_tools"), request);
  CHECK(source.find("ls") != std::string::npos);
  CHECK(source.find("put") == std::string::npos);
}

}  // namespace
}  // namespace tandem::dialect
