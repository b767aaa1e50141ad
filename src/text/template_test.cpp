#include "text/template.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "text/testdata/fixtures.h"

using tandem::ErrorCode;
using tandem::text::ChatContext;
using tandem::text::ChatTemplate;
using tandem::text::Json;
using tandem::text::LocalTime;
using tandem::text::Template;

namespace {

constexpr LocalTime kTime{.unix_seconds = 1772874303, .utc_offset_seconds = 0};

}  // namespace

TEST_CASE("template: renders what jinja2 renders") {
  const Json data = Json::parse(tandem::text::read_testdata("template_cases.json"));
  for (const Json& item : data["cases"]) {
    const std::string name = item["name"];
    CAPTURE(name);
    const auto compiled = Template::compile(item["template"].get<std::string>());
    REQUIRE(compiled);
    const auto text = compiled->render(data["values"], kTime);
    if (item.contains("text")) {
      CHECK_MESSAGE(text.has_value(), (text ? "" : text.error().message));
      if (text) CHECK(*text == item["text"].get<std::string>());
    } else {
      REQUIRE_FALSE(text);
      CHECK(text.error().code == ErrorCode::kInvalid);
      if (item.contains("raised")) CHECK(text.error().message == item["raised"]);
    }
  }
}

// Expected texts are those of jinja2's SandboxedEnvironment, which lets lists be changed.
TEST_CASE("template: lists are changed in place, under all their names") {
  const std::pair<const char*, const char*> cases[] = {
      {"{%- set ns = namespace(ids=[]) -%}{%- for a in [3, 1, 2] -%}"
       "{%- set _ = ns.ids.append('f:' + (a | string)) -%}{%- endfor -%}"
       "{{ ns.ids }} {{ ns.ids.pop(0) }} {{ ns.ids | length }} {% if ns.ids %}some{% endif %}"
       "{% set same = ns.ids %}{% set _ = same.append([1, {'a': [2]}]) %} "
       "{{ ns.ids | tojson }} {{ ns.ids[-1][1]['a'][0] }}",
       R"(['f:3', 'f:1', 'f:2'] f:3 2 some ["f:1", "f:2", [1, {"a": [2]}]] 2)"},
      {"{%- set l = [1, 2] -%}{%- set _ = l.extend([3, 4]) -%}{%- set _ = l.insert(0, 'a') -%}"
       "{%- set _ = l.insert(-1, 'b') -%}{{ l }} {{ l.pop() }} {{ l.pop(-2) }} "
       "{%- set _ = l.remove('b') -%}{%- set c = l.copy() -%}{%- set _ = l.reverse() -%}"
       "{{ l }} {{ c }} {{ l.index('a') }} {{ l == [2, 1, 'a'] }} {{ l + [7] }} {{ 2 in l }} "
       "{{ l | join('-') }} {{ l[1:] }}{%- set _ = l.clear() -%}{{ l }} {{ 'x' if [] else 'y' }} "
       "{{ \"[.pop(\" }} {{ [[1], [2]][1][0] }}",
       "['a', 1, 2, 3, 'b', 4] 4 3[2, 1, 'a'] ['a', 1, 2] 2 True [2, 1, 'a', 7] True 2-1-a "
       "[1, 'a'][] y [.pop( 2"}};
  for (const auto& [source, expected] : cases) {
    const auto compiled = Template::compile(source);
    REQUIRE(compiled);
    const auto text = compiled->render(Json::object(), kTime);
    REQUIRE_MESSAGE(text, (text ? "" : text.error().message));
    CHECK(*text == expected);
  }
  for (const char* source :
       {"{%- set l = [] -%}{{ l.pop() }}", "{{ [1].remove(2) }}",
        "{%- set l = [] -%}{% for a in range(9999) %}{% for b in range(9999) %}"
        "{%- set _ = l.append(a) -%}{% endfor %}{% endfor %}"}) {
    const auto compiled = Template::compile(source);
    REQUIRE(compiled);
    CHECK_FALSE(compiled->render(Json::object(), kTime));
  }
  // What a list holds of itself is a copy.
  const auto own = Template::compile("{%- set l = [1] -%}{%- set _ = l.append(l) -%}{{ l }}");
  REQUIRE(own);
  CHECK(*own->render(Json::object(), kTime) == "[1, [1]]");
}

TEST_CASE("template: dates follow the given zone") {
  const auto compiled = Template::compile("{{ strftime_now('%Y-%m-%d %H:%M') }}");
  REQUIRE(compiled);
  const LocalTime east{.unix_seconds = kTime.unix_seconds, .utc_offset_seconds = 15 * 3600};
  CHECK(*compiled->render(Json::object(), east) == "2026-03-08 00:05");
}

TEST_CASE("template: a source that is not Jinja is refused with its line") {
  const auto compiled = Template::compile("a\n{% if %}");
  REQUIRE_FALSE(compiled);
  CHECK(compiled.error().code == ErrorCode::kCorrupt);
  CHECK(compiled.error().message.find("line 2") != std::string::npos);
}

TEST_CASE("template: endless work and endless recursion end with an error") {
  for (const char* source :
       {"{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"}) {
    const auto compiled = Template::compile(source);
    REQUIRE(compiled);
    CHECK_FALSE(compiled->render(Json::object(), kTime));
  }
}

TEST_CASE("template: integers of any length survive in text form") {
  const auto compiled = Template::compile("{{ big | tojson }} {{ big }}");
  REQUIRE(compiled);
  const std::string digits = "12345678901234567890123";
  CHECK(*compiled->render_text("{\"big\": " + digits + "}", kTime) == digits + " " + digits);
}

TEST_CASE("chat template: tools choose the variant, special tokens and arguments are variables") {
  const auto chat =
      ChatTemplate::compile({{"default", "{{ bos_token }}plain{{ tools is defined }}{{ mode }}"},
                             {"tool_use", "tools {{ tools | length }}{{ add_generation_prompt }}"}},
                            {{"bos_token", "<s>"}});
  REQUIRE(chat);
  ChatContext context{.arguments = {{"mode", "x"}}};
  CHECK(*chat->render(context, kTime) == "<s>plainFalsex");
  context.tools = Json::array();
  CHECK(*chat->render(context, kTime) == "<s>plainFalsex");
  context.tools.push_back({{"type", "function"}});
  CHECK(*chat->render(context, kTime) == "tools 1True");
  CHECK(chat->mentions("bos_token"));
  CHECK_FALSE(chat->mentions("developer"));
}

TEST_CASE("chat template: a set without a default is refused") {
  const auto chat = ChatTemplate::compile({{"rag", "x"}}, {});
  REQUIRE_FALSE(chat);
  CHECK(chat.error().code == ErrorCode::kCorrupt);
}
