#include "chat/guard_tool_loop.h"

#include <doctest/doctest.h>

#include <string>

#include "chat/testdata/harness.h"

using namespace tandem;
using namespace tandem::chat;

namespace {

Json user(const std::string& text) { return {{"role", "user"}, {"content", text}}; }

Json call(const std::string& id, const Json& arguments, const std::string& name = "ls") {
  return {
      {"role", "assistant"},
      {"content", nullptr},
      {"tool_calls", Json::array({{{"id", id},
                                   {"type", "function"},
                                   {"function", {{"name", name}, {"arguments", arguments}}}}})}};
}

Json result(const std::string& id, const std::string& text) {
  return {{"role", "tool"}, {"tool_call_id", id}, {"content", text}};
}

/// So many times the same call, with ids of its own.
Json looping(uint32_t times) {
  Json messages = Json::array({user("list")});
  for (uint32_t i = 0; i < times; ++i) {
    const std::string id = "c" + std::to_string(i);
    // The order of keys and the form differ.
    messages.push_back(i % 2 == 0 ? call(id, {{"a", 1}, {"b", 2}}) : call(id, R"({"b":2,"a":1})"));
    messages.push_back(result(id, i % 2 == 0 ? "no such file" : "no such file\n"));
  }
  return messages;
}

}  // namespace

TEST_CASE("tool loop: the last calls that are the same are counted") {
  for (const uint32_t times : {0U, 1U, 2U, 3U, 7U}) CHECK(looping_calls(looping(times)) == times);
  Json messages = looping(4);
  messages.push_back(call("x", {{"a", 2}, {"b", 2}}));
  messages.push_back(result("x", "no such file"));
  CHECK(looping_calls(messages) == 1);
  messages = looping(4);
  messages.push_back(call("x", {{"a", 1}, {"b", 2}}));
  CHECK(looping_calls(messages) == 0);  // has no result yet
  messages.push_back(result("x", "found it"));
  CHECK(looping_calls(messages) == 1);
}

TEST_CASE("tool loop: parallel calls find their results by id, in any order") {
  Json messages = Json::array({user("list")});
  Json both = call("a", {{"n", 1}});
  both["tool_calls"].push_back(call("b", {{"n", 2}})["tool_calls"][0]);
  messages.push_back(both);
  messages.push_back(result("b", "two"));
  messages.push_back(result("a", "one"));
  CHECK(looping_calls(messages) == 1);
  both["tool_calls"][1] = call("b", {{"n", 1}})["tool_calls"][0];
  messages[1] = both;
  messages[2]["content"] = "one";
  CHECK(looping_calls(messages) == 2);
}

TEST_CASE("tool loop: the user's words begin anew, a machine's do not") {
  Json messages = looping(3);
  messages.push_back(user("<system-reminder>todo list</system-reminder>\n"));
  CHECK(looping_calls(messages) == 3);
  CHECK(looping_calls(steered(messages, 3)) == 3);
  messages.push_back(user("<system-reminder>x</system-reminder> go on"));
  CHECK(looping_calls(messages) == 0);
  CHECK(looping_calls(Json::array({Json::array(), 7, {{"role", "tool"}}})) == 0);
}

TEST_CASE("tool loop: it is told at the answer's end, and to the model only on request") {
  Harness harness;
  harness.answer("ok");
  Request asked = Harness::request();
  auto& messages = std::get<Conversation>(asked.input).messages;
  messages = looping(3);
  CHECK(harness.run(asked).ends.at(0).guards.empty());
  asked.guards.tool_loop = true;
  CHECK(harness.run(asked).ends.at(0).guards == std::vector{Guard::kToolLoop});
  const auto prompt = [&] {
    const gen::Request last = harness.fake.submitted().back();
    std::string text;
    for (const gen::TokenId id : last.prompt) text += harness.model.tokenizer->bytes(id);
    return text;
  };
  CHECK(prompt().find("[tool loop]") == std::string::npos);
  asked.guards = {.steer_tool_loop = true};
  CHECK(harness.run(asked).ends.at(0).guards == std::vector{Guard::kToolLoop});
  CHECK(prompt().find("user\n[tool loop] The last 3 tool calls") != std::string::npos);
  messages = looping(2);
  CHECK(harness.run(asked).ends.at(0).guards.empty());
  CHECK(prompt().find("[tool loop]") == std::string::npos);
}
