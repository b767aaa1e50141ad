// Thinking, quoted markers, damaged and unfinished calls.
#include "dialect/parser.h"

#include <doctest/doctest.h>

#include <string>

#include "dialect/joined_test.h"
#include "dialect/random_call_test.h"

using namespace tandem::dialect;

namespace {

const std::string kCall =
    "<tool_call>\n{\"name\": \"put\", \"arguments\": {\"path\": \"x\"}}\n</tool_call>";

Joined hermes(const std::string& text, Channel first = Channel::kText) {
  return parse(rules_of("json_tools", Tools(sample_tools())), text, first);
}

Json one(const char* key, const char* value) {
  Json object = Json::object();
  object[key] = value;
  return object;
}

}  // namespace

TEST_CASE("parser: thinking before, around and without calls") {
  Joined seen = hermes("<think>hm</think>\n\n" + kCall);
  CHECK(seen.thinking == "hm");
  CHECK(seen.text.empty());
  CHECK(seen.order == "hc");
  seen = hermes("so</think>Hi " + kCall + "\n" + kCall + "\nBye", Channel::kThinking);
  CHECK(seen.thinking == "so");
  CHECK(seen.text == "Hi \nBye");
  CHECK(seen.order == "htcct");
  seen = hermes("Only <think>this");
  CHECK(seen.text == "Only ");
  CHECK(seen.thinking == "this");
}

TEST_CASE("parser: a call inside thinking is delivered, and thinking goes on") {
  const Joined seen = hermes("<think>I call " + kCall + " now</think>ok");
  REQUIRE(seen.calls.size() == 1);
  CHECK(seen.calls[0].arguments == "{\"path\": \"x\"}");
  CHECK(seen.thinking == "I call  now");
  CHECK(seen.text == "ok");
}

TEST_CASE("parser: markers in prose and code are text") {
  for (const std::string& text :
       {std::string("The <tool_call> tag holds JSON, </tool_call> ends it."),
        "In code:\n```\n" + kCall + "\n```\n", "Inline `" + kCall + "` too.",
        std::string("<tool_call>{not json}</tool_call>"), std::string("a <tool_"),
        std::string("quoted \"<tool_call>")}) {
    CAPTURE(text);
    const Joined seen = hermes(text);
    CHECK(seen.text == text);
    CHECK(seen.calls.empty());
  }
  const Joined after = hermes("```\nx\n```\n" + kCall);
  CHECK(after.calls.size() == 1);
}

TEST_CASE("parser: an open end leaks no markup and loses no word") {
  CHECK(hermes("Hi <tool_call>").text == "Hi ");
  CHECK(hermes("Hi <tool_call>\n{\"name\": \"pu").text == "Hi \n{\"name\": \"pu");
  CHECK(hermes("Hi <think>").text == "Hi ");
  const auto coder = rules_of("qwen3_coder", Tools(sample_tools()));
  CHECK(parse(coder, "<tool_call>\n<function=pu").text == "\n=pu");
  CHECK(parse(coder, "<tool_call>\n<func").text.empty());
  const Joined cut = parse(coder, "<tool_call>\n<function=put>\n<parameter=path>\na\nb\n</para");
  REQUIRE(cut.calls.size() == 1);
  CHECK_FALSE(cut.calls[0].complete);
  CHECK(Json::parse(cut.calls[0].arguments)["path"] == "a\nb\n</para");
}

TEST_CASE("parser: arguments that the end cuts off are closed") {
  const std::string whole =
      R"(<tool_call>{"name": "put", "arguments": {"path": "a\u00e9\"b", "cfg": {"k": [1, true, null]}, "n": -1.5e3}})";
  for (size_t size = 0; size <= whole.size(); ++size) {
    CAPTURE(whole.substr(0, size));
    const Joined seen = hermes(whole.substr(0, size));
    CHECK(seen.text.find("<tool_call>") == std::string::npos);
    if (size == whole.size()) CHECK(seen.calls.at(0).complete);
  }
}

TEST_CASE("parser: calls that no JSON parser takes are mended where nothing is lost") {
  const auto arguments = [](const std::string& json) {
    const Joined seen =
        hermes("<tool_call>{\"name\": \"put\", \"arguments\": " + json + "}</tool_call>");
    REQUIRE(seen.calls.size() == 1);
    CHECK(seen.calls[0].complete);
    return Json::parse(seen.calls[0].arguments);
  };
  CHECK(arguments("{'path': 'it\\'s', \"on\": True, \"opt\": None,}") ==
        Json::parse(R"({"path": "it's", "on": true, "opt": null})"));
  CHECK(arguments("{\"path\": \"a\nb\tc\"}") == one("path", "a\nb\tc"));
  CHECK(arguments("{\"path\": \"\\d+\\s\"}") == one("path", "\\d+\\s"));
  CHECK(arguments("{\"n\": 007}") == one("n", "007"));
  CHECK(arguments("{\"path\": \"\\ud83c\\udf89 \\ud83c\"}") == one("path", "🎉 \uFFFD"));
  CHECK(arguments("\"{\\\"path\\\": \\\"x\\\"}\"") == one("path", "x"));
  CHECK(arguments("null") == Json::object());
}

TEST_CASE("parser: what breaks off in its middle is closed, and the rest is text") {
  const Joined seen = hermes(
      "<tool_call>{\"name\": \"put\", \"arguments\": {\"path\": \"say \"hi\"\"}}</tool_call> ok");
  REQUIRE(seen.calls.size() == 1);
  CHECK_FALSE(seen.calls[0].complete);
  CHECK(seen.misfits == 1);
  CHECK(seen.text.find("<tool_call>") == std::string::npos);
  CHECK(seen.text.find("</tool_call>") == std::string::npos);
  CHECK(seen.text.find("ok") != std::string::npos);
}

TEST_CASE("parser: the name may come last, and a broken call is counted as text") {
  Joined seen =
      hermes("<tool_call>{\"arguments\": {\"path\": \"x\"}, \"name\": \"put\"}</tool_call>");
  REQUIRE(seen.calls.size() == 1);
  CHECK(seen.calls[0].arguments == "{\"path\": \"x\"}");
  seen = hermes("<tool_call>{\"name\": 1}</tool_call>");
  CHECK(seen.calls.empty());
  CHECK(seen.misfits == 1);
  CHECK(seen.text == "<tool_call>{\"name\": 1}</tool_call>");
}

TEST_CASE("parser: a closing tag inside a value does not end it") {
  const std::string text =
      "<tool_call>\n<function=put>\n<parameter=body>\nsee </parameter> and more\n"
      "</parameter>\n</function>\n</tool_call>";
  const Joined seen = parse(rules_of("qwen3_coder", Tools(sample_tools())), text);
  REQUIRE(seen.calls.size() == 1);
  CHECK(Json::parse(seen.calls[0].arguments)["body"] == "see </parameter> and more");
}

TEST_CASE("parser: text and arguments come as soon as they are certain") {
  Parser parser(rules_of("json_tools", Tools(sample_tools())), Channel::kText);
  Joined seen;
  seen.add(parser.feed("Hello <"));
  CHECK(seen.text == "Hello ");
  seen.add(parser.feed("tool_call>{\"name\": \"put\", \"arguments\": {"));
  CHECK(seen.calls.empty());
  seen.add(parser.feed("\"path\": \"ab"));
  REQUIRE(seen.calls.size() == 1);
  CHECK(seen.calls[0].name == "put");
  CHECK(seen.calls[0].arguments == "{\"path\": \"ab");
  seen.add(parser.feed("c"));
  CHECK(seen.calls[0].arguments == "{\"path\": \"abc");
}

TEST_CASE("parser: Harmony's channels are thinking, text and calls") {
  const auto rules = rules_of("gpt_oss", Tools(sample_tools()), false);
  Joined seen =
      parse(rules,
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary"
            "<|message|>I look.<|end|><|start|>assistant to=functions.put<|channel|>commentary "
            "<|constrain|>json<|message|>{\"path\": \"x\"}<|call|>");
  CHECK(seen.order == "htc");
  CHECK(seen.thinking == "hm");
  CHECK(seen.text == "I look.");
  CHECK(seen.calls.at(0).name == "put");
  CHECK(seen.calls[0].complete);
  seen = parse(rules, " to=functions.ls<|channel|>analysis code<|message|>{}");
  CHECK(seen.calls.at(0).name == "ls");
  seen =
      parse(rules, "<|channel|>commentary to=functions.ls <|constrain|>json<|message|>{}<|call|>");
  CHECK(seen.calls.at(0).name == "ls");
  seen = parse(rules, "<|channel|>final<|message|>a < b <|x|> c");
  CHECK(seen.text == "a < b <|x|> c");
  CHECK(parse(rules, "no head at all").text == "no head at all");
  CHECK(parse(rules, "<|channel|>fin").text.empty());
  seen = parse(rules, "<|channel|>commentary to=functions.put<|message|>print(1)<|call|>");
  CHECK(seen.text == "print(1)");
  CHECK(seen.misfits == 1);
}

TEST_CASE("parser: without tools, markers of calls are text") {
  Rules rules{.dialect = find("json_tools"), .thinking = {}, .tools = {}, .has_calls = false};
  CHECK(parse(std::make_shared<const Rules>(rules), kCall).text == kCall);
}

TEST_CASE("parser: an object as the whole answer is a call only if it names a tool") {
  const auto rules = rules_of("llama3", Tools(sample_tools()));
  CHECK(parse(rules, "{\"name\": \"put\", \"parameters\": {\"n\": 1}}").calls.size() == 1);
  CHECK(
      parse(
          rules,
          "{\"name\": \"ls\", \"parameters\": {}}; {\"name\": \"put\", \"parameters\": {\"n\": 1}}")
          .calls.size() == 2);
  for (const std::string& text :
       {std::string("{\"name\": \"Bob\", \"parameters\": {}}"), std::string("{\"age\": 3}"),
        std::string("{\"name\": \"put\"} x")}) {
    const Joined seen = parse(rules, text);
    CHECK(seen.text == text);
    CHECK(seen.calls.empty());
  }
  CHECK(parse(rules, "<|python_tag|>brave.call(query=\"x\")").calls.at(0).name == "brave");
  CHECK(parse(rules, "<|python_tag|>print(1)").text == "print(1)");
}

TEST_CASE("parser: native ids are kept") {
  const auto id = [](const char* dialect, const std::string& text) {
    return parse(rules_of(dialect, Tools(sample_tools())), text).calls.at(0).id;
  };
  CHECK(id("kimi_k2",
           "<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:3"
           "<|tool_call_argument_begin|>{}<|tool_call_end|>") == "functions.ls:3");
  CHECK(
      id("mistral", "[TOOL_CALLS][{\"name\": \"ls\", \"arguments\": {}, \"id\": \"abcdefghi\"}]") ==
      "abcdefghi");
  CHECK(id("mistral_small", "[TOOL_CALLS]ls[CALL_ID]a1b2c3d4e[ARGS]{}") == "a1b2c3d4e");
  CHECK(id("json_tools", kCall).empty());
}
