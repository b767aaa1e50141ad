#include "protocol/message_rules.h"

#include <doctest/doctest.h>

namespace tandem::protocol {
namespace {

TEST_CASE("message rules: the line that names a client's request goes, and nothing else") {
  const struct {
    const char* text;
    const char* left;
  } cases[] = {
      {"x-anthropic-billing-header: cch=aaaaa;", ""},
      {"x-anthropic-billing-header: cch=aaaaa;\nYou are", "You are"},
      {"x-anthropic-billing-header: cc_version=2.1.197.a1b; cc_entrypoint=cli; cch=00;You = x",
       "You = x"},
      {"x-anthropic-billing-header: cc_version=2.1.197.a1b\n\nYou are", "You are"},
      {"x-anthropic-other: a=b", ""},
      {"x-anthropic-billing-header: is a header", "x-anthropic-billing-header: is a header"},
      {"x-anthropic-billing-header", "x-anthropic-billing-header"},
      {"x-anthropic-billing-header:", "x-anthropic-billing-header:"},
      {"About x-anthropic-billing-header: a=b;", "About x-anthropic-billing-header: a=b;"},
      {"", ""},
  };
  for (const auto& test : cases) CHECK(without_request_line(test.text) == test.left);
}

TEST_CASE("message rules: two sessions of one client have the same system message") {
  const auto of = [](const std::string& line) {
    Json messages = Json::array({{{"role", "system"}, {"content", line + "You are an agent."}},
                                 {{"role", "user"}, {"content", line}}});
    drop_request_line(messages);
    return messages;
  };
  const Json a = of("x-anthropic-billing-header: cch=aaaaa;\n");
  const Json b = of("x-anthropic-billing-header: cch=bbbbb;\n");
  CHECK(a[0] == b[0]);
  CHECK(a[0]["content"] == "You are an agent.");
  CHECK(a[1] != b[1]);
  Json empty = Json::array({{{"role", "system"}, {"content", "x-anthropic-a: b=c;"}}});
  drop_request_line(empty);
  CHECK(empty.empty());
}

TEST_CASE("message rules: results are named after the latest call of their id") {
  Json messages = Json::parse(R"([
    {"role":"tool","content":"","tool_call_id":"a"},
    {"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f"}},
                                                   {"function":{"name":"nameless"}}]},
    {"role":"tool","content":"","tool_call_id":"a"},
    {"role":"tool","content":"","tool_call_id":"a","name":"own"},
    {"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"g"}}]},
    {"role":"tool","content":"","tool_call_id":"a"},
    {"role":"tool","content":""}])");
  name_tool_results(messages);
  CHECK_FALSE(messages[0].contains("name"));
  CHECK(messages[2]["name"] == "f");
  CHECK(messages[3]["name"] == "own");
  CHECK(messages[5]["name"] == "g");
  CHECK_FALSE(messages[6].contains("name"));
}

}  // namespace
}  // namespace tandem::protocol
