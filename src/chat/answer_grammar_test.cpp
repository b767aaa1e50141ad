// Answers that must have a form or calls: what is drawn under the grammar that the service makes,
// read back by the service itself.
#include <doctest/doctest.h>

#include <future>
#include <random>
#include <string>

#include "chat/testdata/harness.h"
#include "dialect/grammar.h"
#include "grammar/compiler.h"

namespace tandem::chat {
namespace {

using Ids = std::vector<gen::TokenId>;
using Kind = AnswerForm::Kind;

constexpr uint32_t kLogits = 320;
constexpr size_t kMostTokens = 600;

Json put_tool(bool strict = false) {
  Json tool = Json::parse(R"({"type": "function", "function": {"name": "put", "parameters": {
    "type": "object", "additionalProperties": false,
    "properties": {"kind": {"enum": ["a", "b"]}, "n": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["kind", "n"]}}})");
  if (strict) tool["function"]["strict"] = true;
  return Json::array({tool, {{"type", "function"}, {"function", {{"name", "ls"}}}}});
}

AnswerForm schema_form(const std::string& schema) {
  return {.kind = Kind::kJsonSchema, .schema = Json::parse(schema), .field = "response_format"};
}

const char* const kPoint = R"({"type": "object", "additionalProperties": false,
  "properties": {"x": {"type": "integer", "minimum": -5, "maximum": 5}, "on": {"type": "boolean"}},
  "required": ["x", "on"]})";

/// A service whose scripted generator draws at random under the request's grammar.
struct Bound : Harness {
  Bound() {
    script = [this](const gen::Request& request) {
      last = request;
      return gen::FakeReply{.tokens = request.grammar ? draw(*request.grammar, lead) : Ids()};
    };
  }

  std::unique_ptr<gen::Constraint> constraint(const gen::Grammar& grammar) {
    std::promise<Result<std::unique_ptr<gen::Constraint>>> made;
    compiler.make(grammar, [&](auto result) { made.set_value(std::move(result)); });
    auto result = made.get_future().get();
    REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().message));
    return *std::move(result);
  }

  /// Tokens that the grammar allows, after these; the end wherever it may come.
  Ids draw(const gen::Grammar& grammar, const Ids& first) {
    const auto bound = constraint(grammar);
    const gen::TokenId end = model.eos.front();
    REQUIRE(bound->take(first));
    Ids ids = first;
    while (ids.size() < kMostTokens && (ids.empty() || ids.back() != end)) {
      const auto mask = bound->allowed();
      REQUIRE(mask);
      Ids open;
      for (gen::TokenId id = 0; id < static_cast<int>(kLogits); ++id) {
        if (((*mask)[static_cast<size_t>(id) / 32] >> (id % 32) & 1U) != 0) open.push_back(id);
      }
      const bool may_end = std::ranges::find(open, end) != open.end();
      // Markup is left to the test: thinking without end says nothing.
      std::erase_if(open, [&](gen::TokenId id) { return id == think && open.size() > 1; });
      ids.push_back(may_end ? end : open[random() % open.size()]);
      REQUIRE(bound->take({&ids.back(), 1}));
    }
    return ids;
  }

  /// Whether the request's grammar takes all of these.
  bool takes(const Ids& ids) { return constraint(*last.grammar)->take(ids).has_value(); }

  static Request asked(const AnswerForm& form = {}, const Json& tools = nullptr) {
    Request request = Harness::request();
    request.form = form;
    std::get<Conversation>(request.input).tools = tools;
    return request;
  }

  static Conversation& talk(Request& request) { return std::get<Conversation>(request.input); }

  Error refused(Request request) {
    const auto accepted = service.submit(std::move(request), sink());
    REQUIRE_FALSE(accepted);
    return accepted.error();
  }

  grammar::Compiler compiler{[this]() -> Result<grammar::Vocabulary> {
    return grammar::Vocabulary{.tokenizer = model.tokenizer, .eos = model.eos, .logits = kLogits};
  }};
  gen::Request last;
  Ids lead;  // what answers begin with
  std::mt19937 random{41};
  gen::TokenId think = *model.tokenizer->id("<think>");
};

bool is_point(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  return json.is_object() && json.size() == 2 && json["x"].is_number_integer() && json["x"] >= -5 &&
         json["x"] <= 5 && json["on"].is_boolean();
}

TEST_CASE("answer grammar: text of each form fits it, after thinking and without") {
  struct Case {
    AnswerForm form;
    std::function<bool(const std::string&)> fits;
  };
  const Case cases[] = {
      {schema_form(kPoint), is_point},
      {schema_form(R"({"type": "object"})"),
       [](const std::string& text) { return Json::parse(text, nullptr, false).is_object(); }},
      {{.kind = Kind::kRegex, .source = "(ab/|cd\\d){2}"},
       [](const std::string& text) { return text.size() == 6; }},
      {{.kind = Kind::kChoice, .choices = {"yes", "no \"way\"\n"}},
       [](const std::string& text) { return text == "yes" || text == "no \"way\"\n"; }},
      {{.kind = Kind::kLark, .source = "start: a+ \"!\"\na: \"x\" | \"yz\"\n"},
       [](const std::string& text) { return text.ends_with("!"); }}};
  for (const Case& at : cases) {
    for (const bool thinks : {false, true}) {
      Bound bound;
      if (thinks) bound.lead = bound.encode("<think>hello</think>");
      int complete = 0;
      for (int round = 0; round < 12; ++round) {
        const Seen& seen = bound.run(Bound::asked(at.form));
        REQUIRE(seen.ends.size() == 1);
        if (seen.ends[0].usage.completion_tokens >= kMostTokens) continue;
        ++complete;
        CAPTURE(seen.text);
        CHECK(at.fits(seen.text));
        CHECK(seen.thinking == (thinks ? "hello" : ""));
      }
      CHECK(complete > 0);
    }
  }
}

TEST_CASE("answer grammar: prose, a second value and an early end are not allowed") {
  Bound bound;
  bound.run(Bound::asked(schema_form(kPoint)));
  const auto ids = [&](const std::string& text) { return bound.encode(text); };
  CHECK(bound.takes(ids(R"({"x": 1, "on": true})")));
  CHECK(bound.takes(ids("{\n  \"x\": 1,\n  \"on\": true\n}")));
  CHECK_FALSE(bound.takes(ids("Sure")));
  CHECK_FALSE(bound.takes(ids(R"({"x": 1, "on": true} {)")));
  CHECK_FALSE(bound.takes(ids(R"({"x": 1,                                  "on": true})")));
  Ids early = ids(R"({"x": 1)");
  early.push_back(bound.model.eos.front());
  CHECK_FALSE(bound.takes(early));
}

TEST_CASE("answer grammar: thinking is allowed where the prompt lets the model think") {
  const Ids thought = Harness().encode("<think>hello</think>{");
  const auto takes = [&](const std::function<void(Conversation&)>& change, const Ids& ids) {
    Bound bound;
    Request request = Bound::asked(schema_form(kPoint));
    change(Bound::talk(request));
    bound.run(std::move(request));
    return bound.takes(ids);
  };
  CHECK(takes([](Conversation&) {}, thought));
  CHECK_FALSE(
      takes([](auto& talk) { talk.template_arguments["enable_thinking"] = false; }, thought));
  CHECK_FALSE(takes(
      [](auto& talk) {
        talk.messages.push_back({{"role", "assistant"}, {"content", "so "}});
        talk.continues_last_message = true;
      },
      thought));
  const Ids open = Harness().encode("hello</think>\n{");
  const auto opens = [](auto& talk) { talk.template_arguments["open_thinking"] = true; };
  CHECK(takes(opens, open));
  CHECK_FALSE(takes([](Conversation&) {}, open));
}

TEST_CASE("answer grammar: a budget of no thinking leaves none to draw") {
  const auto takes = [](std::optional<uint32_t> budget, const std::string& text) {
    Bound bound;
    Request request = Bound::asked(schema_form(kPoint));
    request.guards.thinking_budget = budget;
    bound.run(std::move(request));
    return bound.takes(bound.encode(text));
  };
  CHECK(takes({}, "<think>hello</think>{"));
  CHECK(takes(9, "<think>hello</think>{"));
  CHECK_FALSE(takes(0, "<think>"));
  CHECK(takes(0, "{"));
}

TEST_CASE("answer grammar: a required call comes, of the named tool, once where one is wanted") {
  Bound bound;
  Request request = Bound::asked({}, put_tool());
  Bound::talk(request).calls = {.is_required = true, .only = {"put"}, .field = "tool_choice"};
  Bound::talk(request).parallel_calls = false;
  int complete = 0;
  for (int round = 0; round < 10; ++round) {
    const Seen& seen = bound.run(request);
    if (seen.ends.at(0).reason != FinishReason::kToolCalls) continue;
    ++complete;
    std::string arguments;
    int calls = 0;
    for (const Event& event : seen.events) {
      if (const auto* call = std::get_if<CallStarted>(&event.body)) {
        ++calls;
        CHECK(call->name == "put");
      }
      if (const auto* part = std::get_if<CallArguments>(&event.body)) arguments += part->json;
    }
    CHECK(calls == 1);
    CHECK(seen.text.empty());
    const Json json = Json::parse(arguments);
    CHECK((json["kind"] == "a" || json["kind"] == "b"));
    CHECK(json["n"] >= 1);
  }
  CHECK(complete > 0);
}

TEST_CASE("answer grammar: strict tools bind a call once it begins, and prose stays free") {
  Bound bound;
  bound.run(Bound::asked({}, put_tool(true)));
  REQUIRE(bound.last.grammar);
  const auto ids = [&](const std::string& text) { return bound.encode(text); };
  const std::string begin = "hello world <tool_call>\n{\"name\": \"put\", \"arguments\": ";
  CHECK(bound.takes(ids("hello {\"kind\": 3}")));
  CHECK(bound.takes(ids("<think>hello</think>hello")));
  CHECK(bound.takes(ids(begin + R"({"kind": "a", "n": 3})" + "}\n</tool_call>")));
  CHECK_FALSE(bound.takes(ids(begin + R"({"kind": "c")")));
  CHECK_FALSE(bound.takes(ids(begin + R"({"kind": "a"})")));
  CHECK_FALSE(bound.takes(ids("hello <tool_call>\n{\"name\": \"rm\"")));
  CHECK(bound.takes(
      ids("<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"any\": [1]}}\n</tool_call>")));
  Bound free;
  free.run(Bound::asked({}, put_tool()));
  CHECK_FALSE(free.last.grammar);
  CHECK(free.service.warnings(Bound::asked({}, put_tool(true))).size() ==
        free.service.warnings(Bound::asked({}, put_tool())).size());
}

TEST_CASE("answer grammar: beside a form calls stay possible") {
  Bound bound;
  bound.run(Bound::asked(schema_form(kPoint), put_tool()));
  const auto ids = [&](const std::string& text) { return bound.encode(text); };
  CHECK(bound.takes(ids(R"({"x": 1, "on": true})")));
  CHECK(bound.takes(ids("<tool_call>\n{\"name\": \"put\", \"arguments\": {}}\n</tool_call>")));
  CHECK_FALSE(bound.takes(ids("hello")));
}

TEST_CASE("answer grammar: the text that a tool takes keeps to its rule, chosen or forced") {
  const Json tools = Json::parse(R"([{"type": "function", "function": {"name": "t", "parameters": {
    "type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}}}])");
  const auto asked = [&](const std::string& pattern, bool is_required, const AnswerForm& form) {
    Request request = Bound::asked(form, tools);
    Conversation& talk = Bound::talk(request);
    talk.calls = {.is_required = is_required, .field = "tool_choice"};
    talk.text_rules["t"] = {.pattern = pattern, .field = "tools[0].format.definition"};
    return request;
  };
  const auto call = [](const std::string& input) {
    return "<tool_call>\n{\"name\": \"t\", \"arguments\": {\"input\": " + Json(input).dump() +
           "}}\n</tool_call>";
  };
  Bound bound;
  for (const bool is_required : {false, true}) {
    for (const AnswerForm& form : {AnswerForm{}, schema_form(kPoint)}) {
      bound.run(asked("a{2,4}\n\"(b|\\\\)", is_required, form));
      CHECK(bound.takes(bound.encode(call("aa\n\"b"))));
      CHECK(bound.takes(bound.encode(call("aaa\n\"\\"))));
      CHECK_FALSE(bound.takes(bound.encode(call("a\n\"b"))));
      CHECK_FALSE(bound.takes(bound.encode(call("aa\n\"bb"))));
      // What the template shows of the tool is what the client sent.
      std::string prompt;
      for (const gen::TokenId id : bound.last.prompt) prompt += bound.model.tokenizer->bytes(id);
      CHECK(prompt.find("input") != std::string::npos);
      CHECK(prompt.find("pattern") == std::string::npos);
    }
    CHECK(bound.refused(asked("a(?=b)", is_required, {})).field == "tools[0].format.definition");
  }
}

TEST_CASE("answer grammar: what cannot be enforced is refused by the request's own field") {
  Bound bound;
  const auto error = [&](Request request) { return bound.refused(std::move(request)); };
  for (const char* schema :
       {R"({"type": "nonsense"})", R"({"$ref": "#"})", R"({"not": {"type": "string"}})"}) {
    CAPTURE(schema);
    const Error refusal = error(Bound::asked(schema_form(schema)));
    CHECK(refusal.code == ErrorCode::kInvalid);
    CHECK(refusal.field == "response_format");
  }
  Request endless = Bound::asked(schema_form(kPoint));
  endless.ignore_eos = true;
  CHECK(error(endless).field == "ignore_eos");
  Request unknown = Bound::asked({}, put_tool());
  Bound::talk(unknown).calls = {.is_required = true, .only = {"rm"}, .field = "tool_choice"};
  CHECK(error(unknown).field == "tool_choice");
  Request none = Bound::asked();
  Bound::talk(none).calls = {.is_required = true, .field = "tool_choice"};
  CHECK(error(none).field == "tool_choice");
  const Error ebnf = error(
      Bound::asked({.kind = Kind::kLark, .source = "root ::= \"a\"", .field = "guided_grammar"}));
  CHECK(ebnf.field == "guided_grammar");
  CHECK(ebnf.message.find("EBNF") != std::string::npos);
  Json strict = put_tool(true);
  strict[0]["function"]["parameters"]["properties"]["n"] = {{"not", {{"type", "string"}}}};
  const Error held = error(Bound::asked({}, strict));
  CHECK(held.field == "tools");
  for (const char* named : {"\"put\"", "\"not\"", "the dialect generic"}) {
    CAPTURE(held.message);
    CHECK(held.message.find(named) != std::string::npos);
  }
  Request forced = Bound::asked({}, strict);
  Bound::talk(forced).calls = {.is_required = true, .field = "tool_choice"};
  CHECK(error(forced).field == "tool_choice");
  strict[0]["function"]["strict"] = false;  // then its arguments are any object
  Bound::talk(forced).tools = strict;
  CHECK(bound.service.submit(forced, bound.sink()));
}

TEST_CASE("answer grammar: a tool of which nothing says what fits is refused where it is strict") {
  for (const bool is_strict : {true, false}) {
    Bound bound;
    Json tools = put_tool(is_strict);
    tools[0]["function"]["parameters"] = {{"$ref", "#"}};
    Request forced = Bound::asked({}, tools);
    Bound::talk(forced).calls = {.is_required = true, .only = {"put"}, .field = "tool_choice"};
    if (is_strict) {
      const Error refusal = bound.refused(forced);
      CHECK(refusal.code == ErrorCode::kInvalid);
      CHECK(refusal.message.find("$ref \"#\" leads back to itself") != std::string::npos);
      continue;
    }
    bound.run(forced);  // its arguments are any object
    CHECK(bound.takes(
        bound.encode("<tool_call>\n{\"name\": \"put\", \"arguments\": {\"a\": 1}}\n</tool_call>")));
  }
}

TEST_CASE("answer grammar: a tool whose call could not be read back is not forced") {
  Bound bound;
  const auto refused = [&](const Json& tools, bool is_required) {
    Request request = Bound::asked({}, tools);
    if (is_required) Bound::talk(request).calls = {.is_required = true, .field = "tool_choice"};
    return bound.refused(std::move(request));
  };
  for (const char* name : {"a\"b", "a\nb", "a b", "<a>", ""}) {
    CAPTURE(name);
    Json tools = put_tool();
    tools[1]["function"]["name"] = name;
    CHECK(refused(tools, true).field == "tools");
    tools[0]["function"]["strict"] = true;
    CHECK(refused(tools, false).field == "tools");
  }
  for (const char* type : {"array", "string"}) {
    CAPTURE(type);
    Json tools = put_tool();
    tools[0]["function"]["parameters"] = {{"type", type}};
    const Error refusal = refused(tools, true);
    CHECK(refusal.field == "tools");
    CHECK(refusal.message.find("\"object\"") != std::string::npos);
  }
  Json named = put_tool();
  named[1]["function"]["name"] = "mcp__files-2.read:all/now";
  Request request = Bound::asked({}, named);
  Bound::talk(request).calls = {.is_required = true, .field = "tool_choice"};
  CHECK(bound.service.submit(request, bound.sink()));
}

TEST_CASE("answer grammar: digits and words of a pattern are those of ASCII") {
  Bound bound;
  bound.run(Bound::asked({.kind = Kind::kRegex, .source = "[\\d-]\\w\\\\d"}));
  CHECK(bound.takes(bound.encode("-a\\d")));
  CHECK(bound.takes(bound.encode("7_\\d")));
  CHECK_FALSE(bound.takes(bound.encode("\u06f2")));
  CHECK_FALSE(bound.takes(bound.encode("7\u00e9")));
  bound.run(Bound::asked(schema_form(R"({"type": "array", "items": {"type": "string",
    "pattern": "^\\d$"}, "minItems": 1})")));
  CHECK(bound.takes(bound.encode(R"(["3"])")));
  CHECK_FALSE(bound.takes(bound.encode("[\"\u06f2")));
}

TEST_CASE("answer grammar: formats that nothing is known of are no rule") {
  Bound bound;
  bound.run(Bound::asked(schema_form(
      R"({"type": "object", "properties": {"format": {"type": "string", "format": "password"}}})")));
  CHECK(bound.takes(bound.encode(R"({"format": "a"})")));
}

TEST_CASE("answer grammar: an answer that a guard cuts off does not look whole") {
  Bound bound;
  std::string again;
  for (int i = 0; i < 200; ++i) again += "I will try again. ";
  bound.script = [&](const gen::Request& request) {
    bound.last = request;
    return gen::FakeReply{.tokens = bound.encode("{\"text\": \"" + again)};
  };
  Request asked = Bound::asked(schema_form(R"({"type": "object"})"));
  asked.guards.repeated_span = true;
  const Seen& seen = bound.run(asked);
  REQUIRE(seen.ends.size() == 1);
  CHECK(bound.last.grammar);
  CHECK(seen.text.size() < again.size());
  CHECK(seen.ends[0].guards == std::vector{Guard::kRepeatedSpan});
  CHECK(seen.ends[0].reason == FinishReason::kLength);
}

}  // namespace
}  // namespace tandem::chat
