#include "script/script.h"

#include <doctest/doctest.h>

using namespace tandem;
using namespace tandem::script;

namespace {

chat::Request request(const char* messages, const char* tools = "null") {
  chat::Request made;
  made.input = chat::Conversation{.messages = Json::parse(messages), .tools = Json::parse(tools)};
  return made;
}

constexpr const char* kRead =
    R"J([{"type": "function", "function": {"name": "read", "parameters": {"type": "object",
        "properties": {"path": {"type": "string"}}}}}])J";

constexpr const char* kAgent = R"J({
  "pace": {"tokens": 2, "step_ms": 5},
  "find": {"user": "file (?<file>\\S+)"},
  "rules": [
    {"when": {"results": 0, "tools": ["read.path"]},
     "say": [{"think": "Look."}, {"call": {"name": "read", "arguments": {"path": "${file}", "n": [1]}}}]},
    {"when": {"results": 1, "result": "word (?<word>\\w+)"}, "pace": {"tokens": 1},
     "say": "It is ${word} in ${file}, not $${word}."},
    {"when": {"tools": [], "last": "^title"}, "say": [{"text": "ab", "times": 3}]},
    {"when": {"last": "busy"}, "refuse": {"code": "busy", "message": "not now"}}
  ]})J";

Script parsed(const char* json) {
  auto made = Script::parse(json);
  REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().message));
  return std::move(*made);
}

std::string refusal(const char* json) {
  const auto made = Script::parse(json);
  return made ? "" : made.error().message;
}

}  // namespace

TEST_CASE("script: the first rule that fits speaks, with what was found in the conversation") {
  const Script agent = parsed(kAgent);
  const auto call =
      agent.plan(request(R"J([{"role": "user", "content": "See file a/b.txt now"}])J", kRead));
  REQUIRE(call);
  REQUIRE(call->parts.size() == 2);
  CHECK(call->parts[0].channel == dialect::Channel::kThinking);
  REQUIRE(call->parts[1].calls.size() == 1);
  CHECK(call->parts[1].calls[0].arguments == Json::parse(R"J({"path": "a/b.txt", "n": [1]})J"));
  CHECK(call->pace.tokens == 2);
  CHECK(call->pace.step == std::chrono::milliseconds(5));

  const auto told = agent.plan(request(
      R"J([{"role": "user", "content": [{"type": "text", "text": "file x"}]},
          {"role": "tool", "content": "the word blue"}])J",
      kRead));
  REQUIRE(told);
  CHECK(told->parts[0].text == "It is blue in x, not ${word}.");
  CHECK(told->pace.tokens == 1);
  CHECK(told->pace.step == std::chrono::milliseconds(5));

  const auto title = agent.plan(request(R"J([{"role": "user", "content": "title?"}])J"));
  REQUIRE(title);
  CHECK(title->parts[0].text == "ababab");
  CHECK(agent.plan(request(R"J([{"role": "user", "content": "busy"}])J")).error().code ==
        ErrorCode::kBusy);
}

TEST_CASE("script: what no rule is for, or lacks a variable, is refused with what there was") {
  const Script agent = parsed(kAgent);
  const auto other = agent.plan(request(R"J([{"role": "user", "content": "hello"}])J", kRead));
  REQUIRE_FALSE(other);
  CHECK(other.error().message.find("${file} was not found") != std::string::npos);
  const auto none = agent.plan(request(R"J([{"role": "user", "content": "hello"}])J"));
  CHECK(none.error().message.find("0 tool results, and tools: none") != std::string::npos);
}

TEST_CASE("script: a raw prompt is what the user said last") {
  const Script any = parsed(R"J({"rules": [{"when": {"last": "(?<n>\\d+)"}, "say": "${n}"}]})J");
  chat::Request raw;
  raw.input = chat::RawPrompt{.prompt = std::string("n is 42")};
  CHECK(any.plan(raw)->parts[0].text == "42");
}

TEST_CASE("script: what is no script is refused with the place and what was expected") {
  CHECK(refusal("[") == "the script is not JSON");
  CHECK(refusal("{}").find("at least one rule") != std::string::npos);
  CHECK(refusal(R"J({"rules": [{"say": "a", "sya": 1}]})J")
            .starts_with("rules[0].sya: expected one of the keys"));
  CHECK(refusal(R"J({"rules": [{"say": [{"text": "a", "think": "b"}]}]})J")
            .starts_with("rules[0].say[0]: expected exactly one"));
  CHECK(
      refusal(R"J({"rules": [{"when": {"last": "("}, "say": "a"}]})J").find("rules[0].when.last") !=
      std::string::npos);
  CHECK(refusal(R"J({"rules": [{"say": "${nobody}"}]})J").find("(?<nobody>") != std::string::npos);
  CHECK(refusal(R"J({"rules": [{"say": "${open"}]})J").find("closed") != std::string::npos);
  CHECK(refusal(R"J({"rules": [{"refuse": {"code": "tired"}}]})J").find("peer_lost") !=
        std::string::npos);
  CHECK(
      refusal(R"J({"pace": {"tokens": 0}, "rules": [{"say": "a"}]})J").starts_with("pace.tokens"));
  CHECK(refusal(R"J({"rules": [{}]})J").find("say, refuse, fail or hang") != std::string::npos);
}

TEST_CASE("script: a regular expression that would take for ever is refused") {
  const Script slow = parsed(R"J({"rules": [{"when": {"last": "(a+)+$"}, "say": "a"}]})J");
  chat::Request raw;
  raw.input = chat::RawPrompt{.prompt = std::string(4000, 'a') + "b"};
  CHECK(slow.plan(raw).error().message.find("too many steps") != std::string::npos);
}
