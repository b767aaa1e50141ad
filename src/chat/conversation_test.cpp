#include "chat/conversation.h"

#include <doctest/doctest.h>

#include <string>

using tandem::ErrorCode;
using tandem::Result;
using namespace tandem::chat;
using tandem::text::ChatTemplate;

namespace {

/// Writes every message as role:content, in brackets.
constexpr const char* kPlain =
    "{% for m in messages %}[{{ m.role }}:{{ m.content }}"
    "{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.name }}("
    "{{ c.function.arguments.city }}){% endfor %}{% endif %}]{% endfor %}"
    "{% if add_generation_prompt %}[assistant:{% endif %}";

/// System first or not at all, then user and assistant in turn.
constexpr const char* kStrict =
    "{% set ns = namespace(rest=messages) %}"
    "{% if messages[0].role == 'system' %}<{{ messages[0].content }}>"
    "{% set ns.rest = messages[1:] %}{% endif %}"
    "{% for m in ns.rest %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate!') }}{% endif %}[{{ m.role }}:{{ m.content }}]"
    "{% endfor %}";

constexpr const char* kNoSystem =
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}";

/// Shows a system message only at the start, and says nothing about others.
constexpr const char* kForgetful =
    "{% for m in messages %}{% if m.role != 'system' or loop.first %}"
    "[{{ m.role }}:{{ m.content }}]{% endif %}{% endfor %}";

Result<std::string> render_with(const char* source,
                                Conversation conversation,
                                bool has_thinking = false,
                                const Json& defaults = Json::object()) {
  const auto chat = ChatTemplate::compile({{"default", source}}, {});
  REQUIRE(chat);
  return render(conversation, {.chat_template = *chat,
                               .default_arguments = defaults,
                               .has_thinking = has_thinking,
                               .now = {}});
}

Result<std::string> render_messages(const char* source, const char* messages) {
  return render_with(source, {.messages = Json::parse(messages)});
}

}  // namespace

TEST_CASE("conversation: null, missing and listed content become text") {
  const auto prompt = render_messages(
      kPlain,
      R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
          {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": "{\"city\": \"Rome\"}"}}]},
          {"role": "tool"}, {"role": "user", "content": []}])");
  REQUIRE(prompt);
  CHECK(*prompt == "[user:ab][assistant:f(Rome)][tool:][user:][assistant:");
}

TEST_CASE("conversation: what is no text is refused") {
  for (const char* messages :
       {R"([{"role": "user", "content": [{"type": "image_url"}]}])",
        R"([{"role": "user", "content": 5}])", R"([{"content": "x"}])", R"(["x"])", R"({})"}) {
    CAPTURE(messages);
    const auto prompt = render_messages(kPlain, messages);
    REQUIRE_FALSE(prompt);
    CHECK(prompt.error().code == ErrorCode::kInvalid);
    CHECK(prompt.error().field == "messages");
  }
}

TEST_CASE("conversation: strict templates get merged neighbours and mapped systems") {
  CHECK(*render_messages(kStrict,
                         R"([{"role": "system", "content": "A"}, {"role": "system", "content": "B"},
                             {"role": "user", "content": "1"}, {"role": "user", "content": "2"}])") ==
        "<A\n\nB>[user:1\n\n2]");
  CHECK(
      *render_messages(kStrict,
                       R"([{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"},
                             {"role": "system", "content": "S"}, {"role": "user", "content": "3"}])") ==
      "[user:1][assistant:2][user:S\n\n3]");
  CHECK(
      *render_messages(
          kNoSystem, R"([{"role": "system", "content": "S"}, {"role": "user", "content": "1"}])") ==
      "[user:S\n\n1]");
}

TEST_CASE("conversation: a late system message is not left out in silence") {
  CHECK(*render_messages(
            kForgetful,
            R"([{"role": "user", "content": "1"}, {"role": "system", "content": " S "}])") ==
        "[user:1\n\n S ]");
}

TEST_CASE("conversation: a developer is a system for templates that do not know the role") {
  const char* messages =
      R"([{"role": "developer", "content": "D"}, {"role": "user", "content": "1"}])";
  CHECK(*render_messages(kStrict, messages) == "<D>[user:1]");
  const std::string knowing = std::string("{# developer #}") + kPlain;
  CHECK(render_messages(knowing.c_str(), messages)->starts_with("[developer:D]"));
}

TEST_CASE("conversation: a tool result or an answer before any question still renders") {
  CHECK(*render_messages(kStrict, R"([{"role": "tool", "content": "T"}])") == "[user:T]");
  CHECK(*render_messages(
            kStrict,
            R"([{"role": "assistant", "content": "Hi"}, {"role": "user", "content": "1"}])") ==
        "[user:Hi\n\n1]");
}

TEST_CASE("conversation: templates that want arguments as text get text") {
  const char* source =
      "{% for m in messages %}{% for c in m.tool_calls %}{{ 'call ' + c.function.arguments }}"
      "{% endfor %}{% endfor %}";
  CHECK(
      *render_messages(
          source,
          R"([{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}])") ==
      R"(call {"a":1})");
}

TEST_CASE("conversation: what no form can save is refused in the template's words") {
  const auto prompt =
      render_messages("{{ raise_exception('Never.') }}", R"([{"role": "user", "content": "1"}])");
  REQUIRE_FALSE(prompt);
  CHECK(prompt.error().code == ErrorCode::kInvalid);
  CHECK(prompt.error().message == "Never.");
  CHECK(prompt.error().field == "messages");
}

TEST_CASE("conversation: no messages is an error, with the template's message if it has one") {
  const auto silent = render_messages(kPlain, "[]");
  REQUIRE_FALSE(silent);
  CHECK(silent.error().code == ErrorCode::kInvalid);
  const auto loud = render_messages(
      "{% if not messages %}{{ raise_exception('Say something') }}{% endif %}", "[]");
  REQUIRE_FALSE(loud);
  CHECK(loud.error().message == "Say something");
  Conversation continued;
  continued.continues_last_message = true;
  CHECK_FALSE(render_with(kPlain, continued));
}

TEST_CASE("conversation: the request's arguments win over defaults, those over enable_thinking") {
  const char* source = "{{ enable_thinking }} {{ mode }}";
  Conversation conversation{.messages = Json::parse(R"([{"role": "user", "content": "x"}])")};
  CHECK(*render_with(source, conversation, true) == "True ");
  CHECK(*render_with(source, conversation, false) == "False ");
  const Json defaults = {{"enable_thinking", false}, {"mode", "d"}};
  CHECK(*render_with(source, conversation, true, defaults) == "False d");
  conversation.template_arguments = {{"mode", "r"}};
  CHECK(*render_with(source, conversation, true, defaults) == "False r");
}

TEST_CASE("conversation: an answer may continue the last message, spaces included") {
  Conversation conversation{
      .messages = Json::parse(
          R"([{"role": "user", "content": "x"}, {"role": "assistant", "content": "so "}])"),
      .continues_last_message = true};
  CHECK(*render_with(kPlain, conversation) == "[user:x][assistant:so ");
}

TEST_CASE("conversation: thinking is open only where the answer begins") {
  const tandem::text::ThinkingMarkers markers{"<think>", "</think>"};
  CHECK(ends_in_thinking("a<think>\n", markers, false));
  CHECK_FALSE(ends_in_thinking("a", markers, false));
  CHECK_FALSE(ends_in_thinking("a<think>\n\n</think>\n\n", markers, false));
  CHECK_FALSE(ends_in_thinking("what does <think> mean? assistant:", markers, false));
  CHECK(ends_in_thinking("a<think>I was", markers, true));
  CHECK_FALSE(ends_in_thinking("a<think>I was</think>so", markers, true));
}
