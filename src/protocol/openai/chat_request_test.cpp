#include "protocol/openai/chat_request.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "protocol/errors.h"
#include "protocol/openai/completion_request.h"
#include "protocol/tiny_model_test.h"

namespace tandem::protocol::openai {
namespace {

Options options() {
  Options out;
  out.aliases = {"tiny"};
  return out;
}

std::string with(const std::string& fields) {
  return R"({"messages":[{"role":"user","content":"hi"}])" + (fields.empty() ? "" : "," + fields) +
         "}";
}

Result<WireRequest> parse(const std::string& body, const Options& rules = options()) {
  return parse_chat(body, {.model = kTinyModel, .options = rules});
}

Result<WireRequest> parse_fields(const std::string& fields) { return parse(with(fields)); }

Json messages_of(const Result<WireRequest>& wire) {
  return std::get<chat::Conversation>(wire.value().request.input).messages;
}

/// Lines "status code param | fields"; '#' starts a comment.
struct Refusal {
  int status = 0;
  std::string code;
  std::string param;
  std::string fields;
};

std::vector<Refusal> load_refusals(const std::string& name) {
  std::ifstream file(std::string(TANDEM_SOURCE_DIR) + "/src/protocol/openai/testdata/" + name);
  std::vector<Refusal> out;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    Refusal refusal;
    std::istringstream words(line.substr(0, line.find(" | ")));
    words >> refusal.status >> refusal.code >> refusal.param;
    refusal.fields = line.substr(line.find(" | ") + 3);
    out.push_back(refusal);
  }
  return out;
}

TEST_CASE("chat request: every broken rule is refused with its status, code and field") {
  const auto refusals = load_refusals("refused_chat.txt");
  REQUIRE(refusals.size() > 80);
  for (const Refusal& expected : refusals) {
    CAPTURE(expected.fields);
    const bool whole = expected.fields.starts_with("body ");
    const auto wire = whole ? parse(expected.fields.substr(5)) : parse_fields(expected.fields);
    REQUIRE_FALSE(wire);
    CHECK(status_of(wire.error()) == expected.status);
    CHECK(code_of(wire.error()) == expected.code);
    CHECK((wire.error().field.empty() ? "-" : wire.error().field) == expected.param);
    CHECK(wire.error().message.size() < 600);
  }
}

TEST_CASE("completion request: every broken rule is refused with its status, code and field") {
  const auto refusals = load_refusals("refused_completion.txt");
  REQUIRE(refusals.size() > 10);
  for (const Refusal& expected : refusals) {
    CAPTURE(expected.fields);
    const auto wire =
        parse_completion("{" + expected.fields + "}", {.model = kTinyModel, .options = options()});
    REQUIRE_FALSE(wire);
    CHECK(status_of(wire.error()) == expected.status);
    CHECK(code_of(wire.error()) == expected.code);
    CHECK((wire.error().field.empty() ? "-" : wire.error().field) == expected.param);
  }
}

TEST_CASE("chat request: a message names the field, the value and the rule") {
  CHECK(parse_fields(R"("temperature":"hot")").error().message ==
        "'temperature' must be a number from 0 to 100, not \"hot\"");
  CHECK(parse_fields(R"("n":true)").error().message ==
        "'n' must be a whole number from 1 to 32, not true");
  CHECK(parse(R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":
        [{"function":{"name":""}}]}]})")
            .error()
            .message.starts_with("'messages[1].tool_calls[0].function.name' must be a string"));
}

TEST_CASE("chat request: null is the default for every field") {
  const auto plain = parse_fields("");
  std::string all;
  for (const char* name : {"model",
                           "stream",
                           "stream_options",
                           "max_tokens",
                           "max_completion_tokens",
                           "temperature",
                           "top_p",
                           "top_k",
                           "min_p",
                           "xtc_probability",
                           "xtc_threshold",
                           "repetition_penalty",
                           "presence_penalty",
                           "frequency_penalty",
                           "repetition_context_size",
                           "logit_bias",
                           "seed",
                           "n",
                           "stop",
                           "logprobs",
                           "top_logprobs",
                           "min_tokens",
                           "ignore_eos",
                           "priority",
                           "index_reuse",
                           "timeout",
                           "response_format",
                           "tools",
                           "tool_choice",
                           "adapters",
                           "draft_model",
                           "functions",
                           "audio",
                           "reasoning_effort",
                           "enable_thinking",
                           "chat_template_kwargs",
                           "modalities",
                           "user"}) {
    all += std::string(all.empty() ? "" : ",") + "\"" + name + "\":null";
  }
  const auto nulls = parse_fields(all);
  REQUIRE(nulls);
  CHECK(nulls->ignored.empty());
  CHECK(nulls->request.sampling == plain->request.sampling);
  CHECK(nulls->request.choices == 1);
  CHECK(nulls->model == "org/tiny");
  CHECK_FALSE(nulls->request.max_tokens);
  CHECK_FALSE(nulls->request.logprobs);
  CHECK_FALSE(nulls->stream);
}

TEST_CASE("chat request: every field reaches the request") {
  const auto wire = parse_fields(
      R"("model":"tiny","stream":true,"stream_options":{"include_usage":true},"max_tokens":5,
         "max_completion_tokens":9,"temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.1,
         "xtc_probability":1,"xtc_threshold":0.2,"repetition_penalty":1.1,
         "repetition_context_size":20,"presence_penalty":-2,"presence_context_size":3,
         "frequency_penalty":2,"frequency_context_size":4,"logit_bias":{"7":-100,"999":1.5},
         "seed":18446744073709551615,"n":3,"stop":["a","b"],"logprobs":true,"top_logprobs":5,
         "min_tokens":2,"ignore_eos":true,"priority":"low","timeout":1.5,"index_reuse":48)");
  REQUIRE(wire);
  const chat::Request& request = wire->request;
  const gen::Sampling& sampling = request.sampling;
  CHECK(wire->model == "tiny");
  CHECK(wire->stream);
  CHECK(wire->include_usage);
  CHECK(request.max_tokens == 9);
  CHECK(sampling.temperature == 0.5F);
  CHECK(sampling.top_p == 0.9F);
  CHECK(sampling.top_k == 40);
  CHECK(sampling.min_p == 0.1F);
  CHECK(sampling.xtc_probability == 1.0F);
  CHECK(sampling.xtc_threshold == 0.2F);
  CHECK(sampling.repetition == gen::Penalty{.value = 1.1F, .context = 20});
  CHECK(sampling.presence == gen::Penalty{.value = -2, .context = 3});
  CHECK(sampling.frequency == gen::Penalty{.value = 2, .context = 4});
  CHECK(sampling.logit_bias == std::vector<gen::LogitBias>{{7, -100}, {999, 1.5F}});
  CHECK(request.seed == 18446744073709551615U);
  CHECK(request.choices == 3);
  CHECK(request.stop == std::vector<std::string>{"a", "b"});
  CHECK(request.logprobs == 5U);
  CHECK(request.min_tokens == 2);
  CHECK(request.ignore_eos);
  CHECK(request.priority == gen::Priority::kLow);
  CHECK(request.deadline == std::chrono::milliseconds(1500));
  CHECK(request.index_reuse == 48);
}

TEST_CASE("chat request: the model answers to its id, its aliases and no name") {
  for (const char* name : {"org/tiny", "tiny", "default_model", ""}) {
    CHECK(parse_fields("\"model\":\"" + std::string(name) + "\""));
  }
}

TEST_CASE("chat request: unknown fields are reported, or refused under strict rules") {
  const auto wire = parse_fields(R"("frobnicate":1,"zzz":null,"user":"u","store":false)");
  REQUIRE(wire);
  CHECK(wire->ignored == std::vector<std::string>{"frobnicate", "zzz"});
  Options strict = options();
  strict.strict_fields = true;
  CHECK(parse(with(R"("frobnicate":1)"), strict).error().field == "frobnicate");
  CHECK(parse(with(R"("user":"u","store":false,"metadata":{})"), strict));
}

TEST_CASE("chat request: messages are made what templates read") {
  const auto wire = parse(R"({"messages":[
    {"role":"developer","content":"rules","id":"secret"},
    {"role":"user","content":[{"type":"text","text":"a"},{"type":"input_text","text":"b"}]},
    {"role":"assistant","content":null,"reasoning":"hmm","tool_calls":[
      {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"z\": [1], \"a\": null}"}},
      {"function":{"name":"g","arguments":""}},
      {"function":{"name":"h","arguments":{"k":1}}}]},
    {"role":"tool","tool_call_id":"c1","content":[]},
    {"role":"user","name":"ann","content":null}]})");
  REQUIRE(wire);
  CHECK(messages_of(wire) == Json::parse(R"([
    {"role":"developer","content":"rules"},
    {"role":"user","content":"ab"},
    {"role":"assistant","content":"","reasoning_content":"hmm","tool_calls":[
      {"id":"c1","type":"function","function":{"name":"f","arguments":{"z":[1],"a":null}}},
      {"type":"function","function":{"name":"g","arguments":{}}},
      {"type":"function","function":{"name":"h","arguments":{"k":1}}}]},
    {"role":"tool","content":"","tool_call_id":"c1","name":"f"},
    {"role":"user","content":"","name":"ann"}])"));
  CHECK(dump(messages_of(wire)[2]["tool_calls"][0]["function"]["arguments"]) ==
        R"({"z":[1],"a":null})");
}

TEST_CASE("chat request: tools go to the template as sent, unless none may be called") {
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"f","parameters":{"b":1,"a":2}}}])";
  const auto conversation = [&](const std::string& fields) {
    return std::get<chat::Conversation>(parse_fields(fields).value().request.input);
  };
  CHECK(dump(conversation(tools).tools) == tools.substr(8));
  CHECK(conversation(tools + R"(,"tool_choice":"auto")").tools.size() == 1);
  CHECK(conversation(tools + R"(,"tool_choice":"none")").tools.is_null());
  CHECK(conversation(R"("tools":[])").tools.is_null());
  CHECK(conversation(tools).parallel_calls);
  CHECK_FALSE(conversation(tools + R"(,"parallel_tool_calls":false)").parallel_calls);
}

TEST_CASE("chat request: calls are forced, of any tool, some or one") {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}},
    {"type":"function","function":{"name":"g"}}],"tool_choice":)";
  const auto talk = [&](const std::string& choice) {
    return std::get<chat::Conversation>(parse_fields(tools + choice).value().request.input);
  };
  using Names = std::vector<std::string>;
  CHECK(talk(R"("required")").calls.is_required);
  CHECK(talk(R"("required")").calls.only.empty());
  CHECK(talk(R"({"type":"function","function":{"name":"g"}})").calls.only == Names{"g"});
  CHECK(talk(R"({"type":"function","function":{"name":"g"}})").tools.size() == 2);
  const auto some = [&](const std::string& mode) {
    return talk(R"({"type":"allowed_tools","allowed_tools":{"mode":")" + mode +
                R"(","tools":[{"type":"function","function":{"name":"g"}}]}})");
  };
  CHECK(some("required").calls.only == Names{"g"});
  CHECK(some("required").tools.size() == 2);
  CHECK_FALSE(some("auto").calls.is_required);
  CHECK(some("auto").tools.size() == 1);
}

TEST_CASE("chat request: the model sees a custom tool as a function of one string") {
  const auto wire = parse_fields(
      R"("tools":[{"type":"function","function":{"name":"f"}},
      {"type":"custom","custom":{"name":"steer","description":"Steers","format":
        {"type":"grammar","grammar":{"syntax":"lark","definition":"start: /x/"}}}},
      {"type":"custom","custom":{"name":"say","format":{"type":"text"}}}],
      "tool_choice":{"type":"custom","custom":{"name":"steer"}})");
  REQUIRE_MESSAGE(wire.has_value(), (wire ? "" : wire.error().message));
  CHECK(wire->warnings.empty());
  CHECK(wire->notes == Json::array({"say", "steer"}));
  const auto talk = std::get<chat::Conversation>(wire->request.input);
  CHECK(talk.tools == Json::parse(R"([{"type":"function","function":{"name":"f"}},
    {"type":"function","function":{"name":"steer",
      "description":"Steers\n\nThe input follows this grammar:\nstart: /x/","parameters":
        {"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}}},
    {"type":"function","function":{"name":"say","parameters":
        {"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}}}])"));
  REQUIRE(talk.text_rules.size() == 1);
  CHECK(talk.text_rules.at("steer").pattern == "(?:x)");
  CHECK(talk.text_rules.at("steer").field == "tools[1].custom.format.grammar.definition");
  CHECK(talk.calls.only == std::vector<std::string>{"steer"});
}

TEST_CASE("chat request: some of the tools are allowed, functions and custom ones") {
  const auto with_allowed = [](const std::string& mode, const std::string& tools) {
    return parse_fields(R"("tools":[{"type":"function","function":{"name":"f"}},
        {"type":"custom","custom":{"name":"say"}},{"type":"function","function":{"name":"g"}}],
      "tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":")" +
                        mode + R"(","tools":[)" + tools + "]}}");
  };
  const std::string both = R"({"type":"function","function":{"name":"g"}},
                              {"type":"custom","custom":{"name":"say"}})";
  const auto some = std::get<chat::Conversation>(with_allowed("auto", both).value().request.input);
  REQUIRE(some.tools.size() == 2);
  CHECK(some.tools[0]["function"]["name"] == "say");
  CHECK(some.tools[1]["function"]["name"] == "g");
  CHECK(std::get<chat::Conversation>(with_allowed("required", both).value().request.input)
            .calls.only == std::vector<std::string>{"g", "say"});
  const auto refusal = [&](const std::string& tool) {
    return with_allowed("auto", tool).error().message;
  };
  CHECK(refusal(R"({"type":"custom","custom":{"name":"sing"}})") ==
        R"('tool_choice' allows the tool "sing", which is not in 'tools')");
  CHECK(refusal(R"({"type":"custom","function":{"name":"say"}})") ==
        "'tool_choice.tools[0].name' must name a tool");
  CHECK(refusal(R"({"type":"mcp","server_label":"s"})") ==
        R"('tool_choice.tools[0].type' must be "function" or "custom" here)");
}

TEST_CASE("chat request: a grammar that cannot be enforced is told of") {
  const auto wire = parse_fields(
      R"("tools":[{"type":"custom","custom":{"name":"t","format":{"type":"grammar","grammar":
        {"syntax":"lark","definition":"start: \"(\" start \")\" | \"x\""}}}}])");
  REQUIRE_MESSAGE(wire.has_value(), (wire ? "" : wire.error().message));
  REQUIRE(wire->warnings.size() == 1);
  CHECK(wire->warnings[0].code == "grammar_not_enforced");
  CHECK(std::get<chat::Conversation>(wire->request.input).text_rules.empty());
}

TEST_CASE("chat request: calls of custom tools come back as the model wrote them") {
  const auto wire = parse(R"({"messages":[{"role":"user","content":"go"},
    {"role":"assistant","content":null,"tool_calls":[
      {"id":"c1","type":"custom","custom":{"name":"steer","input":"*** \"x\"\n"}},
      {"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]},
    {"role":"tool","tool_call_id":"c1","content":"done"}]})");
  REQUIRE_MESSAGE(wire.has_value(), (wire ? "" : wire.error().message));
  CHECK(messages_of(wire)[1]["tool_calls"] == Json::parse(R"([
    {"id":"c1","type":"function","function":{"name":"steer","arguments":{"input":"*** \"x\"\n"}}},
    {"id":"c2","type":"function","function":{"name":"f","arguments":{}}}])"));
  CHECK(messages_of(wire)[2]["name"] == "steer");
}

TEST_CASE("chat request: each way to say what the text must be") {
  using Kind = chat::AnswerForm::Kind;
  const auto form = [](const std::string& fields) {
    return parse_fields(fields).value().request.form;
  };
  CHECK(form("").kind == Kind::kAny);
  CHECK(form(R"("response_format":{"type":"text"})").kind == Kind::kAny);
  CHECK(form(R"("response_format":{"type":"json_object"})").schema == Json{{"type", "object"}});
  const auto schema = form(
      R"("response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,
         "schema":{"type":"object","title":"T"}}})");
  CHECK(schema.schema["title"] == "T");
  CHECK(schema.field == "response_format");
  CHECK(form(R"("guided_json":{"type":"array"})").schema["type"] == "array");
  CHECK(form(R"("guided_json":"{\"type\":\"array\"}")").schema["type"] == "array");
  const auto broken = parse_fields(R"("guided_json":"{\"type\":")");
  REQUIRE_FALSE(broken);
  CHECK(broken.error().message.starts_with(
      "'guided_json' must be a JSON schema: its text is not JSON"));
  CHECK(form(R"("guided_regex":"a+")").source == "a+");
  CHECK(form(R"("guided_choice":["a","b"])").choices.size() == 2);
  CHECK(form(R"("guided_grammar":"start: \"a\"")").kind == Kind::kLark);
}

TEST_CASE("chat request: what five clients send is taken whole") {
  // opencode: an empty text beside calls, results as strings, the thinking it was shown.
  const auto opencode = parse(R"({"model":"tiny","max_tokens":8192,"messages":[
    {"role":"system","content":"Work in /w. Today is Monday."},
    {"role":"user","content":"\"fix it\""},
    {"role":"assistant","content":"","reasoning_content":"look","tool_calls":[{"id":"call_1",
      "type":"function","function":{"name":"read","arguments":"{\"filePath\":\"/w/a\"}"}}]},
    {"role":"tool","tool_call_id":"call_1","content":"1: x"}],
    "tools":[{"type":"function","function":{"name":"read","description":"Reads",
      "parameters":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}}}],
    "tool_choice":"auto","stream":true,"stream_options":{"include_usage":true}})");
  REQUIRE(opencode);
  CHECK(opencode->ignored.empty());
  CHECK(messages_of(opencode)[2]["reasoning_content"] == "look");
  CHECK(messages_of(opencode)[3]["name"] == "read");
  // pi: developer, parts for users, null beside calls, the id last.
  const auto pi = parse(R"({"model":"tiny","stream":true,"stream_options":{"include_usage":true},
    "store":false,"max_completion_tokens":9,"reasoning_effort":"medium","messages":[
    {"role":"developer","content":"Rules"},{"role":"user","content":[{"type":"text","text":"go"}]},
    {"role":"assistant","content":null,"reasoning":"hm","tool_calls":[{"id":"","type":"function",
      "function":{"name":"bash","arguments":"{}"}}]},
    {"role":"tool","content":"ok","tool_call_id":""}],
    "tools":[{"type":"function","function":{"name":"bash","description":"Runs",
      "parameters":{"type":"object"},"strict":false}}]})");
  REQUIRE(pi);
  CHECK(pi->ignored.empty());
  CHECK(messages_of(pi)[0]["role"] == "developer");
  // qwen-code: lists of parts for results too, other switches for thinking.
  const auto qwen = parse(R"({"model":"tiny","max_tokens":8000,"stream":true,"messages":[
    {"role":"system","content":"S"},{"role":"user","content":[{"type":"text","text":"tree"}]},
    {"role":"assistant","content":"Got it."},{"role":"user","content":[{"type":"text","text":"q"}]},
    {"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":
      {"name":"read_file","arguments":"{\"p\":1}"}},{"id":"d","type":"function","function":
      {"name":"ls","arguments":"{}"}}]},
    {"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"A"}]},
    {"role":"tool","tool_call_id":"d","content":[{"type":"text","text":"B"}]}],
    "thinking":{"type":"disabled"},"metadata":{"sessionId":"s"}})");
  REQUIRE(qwen);
  CHECK(qwen->ignored.empty());
  CHECK(messages_of(qwen)[6] ==
        Json::parse(R"({"role":"tool","content":"B","tool_call_id":"d","name":"ls"})"));
  const auto& talk = std::get<chat::Conversation>(qwen->request.input);
  CHECK(talk.template_arguments == Json{{"enable_thinking", false}});
}

TEST_CASE("chat request: arguments that are no JSON are shown as they are, with a warning") {
  const std::string deep(200, '[');
  for (const std::string& text : {std::string(R"({"a":)"), std::string("ls -la"), deep,
                                  std::string("{\"a\": 1}}"), std::string("\xF0\x9F")}) {
    CAPTURE(text);
    Json call{{"id", "c"}, {"function", {{"name", "f"}, {"arguments", lossy_utf8(text)}}}};
    Json body;
    body["messages"] = Json::array(
        {Json{{"role", "user"}, {"content", "x"}},
         Json{{"role", "assistant"}, {"tool_calls", {call, call}}},
         Json{{"role", "tool"}, {"tool_call_id", "c"}, {"content", "InputValidationError"}}});
    const auto wire = parse(dump(body));
    REQUIRE(wire);
    const Json calls = messages_of(wire)[1]["tool_calls"];
    CHECK(calls[1]["function"]["arguments"] == Json{{"unparsed_arguments", lossy_utf8(text)}});
    REQUIRE(wire->warnings.size() == 1);
    CHECK(wire->warnings[0].code == "unparsed_arguments");
  }
}

TEST_CASE("chat request: calls that clients mark as failed keep their shape") {
  // opencode renames them, Claude Code puts the text into an object.
  const auto wire = parse(R"({"messages":[{"role":"user","content":"x"},
    {"role":"assistant","content":"","tool_calls":[
      {"id":"a","type":"function","function":{"name":"invalid",
        "arguments":"{\"tool\":\"edit\",\"error\":\"no JSON\"}"}},
      {"id":"b","type":"function","function":{"name":"Bash",
        "arguments":{"__unparsedToolInput":{"raw":"{\"a\":"}}}}]},
    {"role":"tool","tool_call_id":"a","content":"e"},{"role":"tool","tool_call_id":"b","content":"e"}]})");
  REQUIRE(wire);
  CHECK(wire->warnings.empty());
  const Json calls = messages_of(wire)[1]["tool_calls"];
  CHECK(calls[0]["function"]["arguments"]["tool"] == "edit");
  CHECK(calls[1]["function"]["arguments"]["__unparsedToolInput"]["raw"] == "{\"a\":");
}

TEST_CASE("chat request: an image in a tool's result is named, not refused") {
  const auto wire = parse(R"({"messages":[{"role":"user","content":"x"},
    {"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"seen: "},
      {"type":"image_url","image_url":{"url":"data:"}},{"type":"image_url","image_url":{}}]}]})");
  REQUIRE(wire);
  CHECK(messages_of(wire)[1]["content"] ==
        "seen: [image_url left out: this model reads text only]"
        "[image_url left out: this model reads text only]");
  REQUIRE(wire->warnings.size() == 1);
  CHECK(wire->warnings[0].code == "left_out_of_tool_result");
}

TEST_CASE("chat request: a model without a template gets roles as words") {
  chat::ModelInfo bare = kTinyModel;
  bare.has_chat_template = false;
  const auto prompt_of = [&](const std::string& body) {
    const auto wire = parse_chat(body, {.model = bare, .options = options()});
    return std::get<std::string>(std::get<chat::RawPrompt>(wire.value().request.input).prompt);
  };
  const std::string talk =
      R"("messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},
         {"role":"assistant","content":"a"}])";
  CHECK(prompt_of("{" + talk + "}") == "ASSISTANT's RULE: s\nUSER: u\nASSISTANT: a\nASSISTANT:");
  CHECK(prompt_of("{" + talk + R"(,"continue_final_message":true})") ==
        "ASSISTANT's RULE: s\nUSER: u\nASSISTANT: a");
  CHECK(prompt_of("{" + talk + R"(,"role_mapping":{"user":"Q: ","assistant":"A: ","stop":"|"}})") ==
        "s|Q: u|A: a|A:");
  const auto tools =
      parse_chat("{" + talk + R"(,"tools":[{"type":"function","function":{"name":"f"}}]})",
                 {.model = bare, .options = options()});
  REQUIRE(tools.value().warnings.size() == 1);
  CHECK(tools->warnings[0].code == "tools_not_in_template");
}

TEST_CASE("chat request: thinking switches become template arguments") {
  const auto arguments = [&](const std::string& fields) {
    return std::get<chat::Conversation>(parse_fields(fields).value().request.input)
        .template_arguments;
  };
  CHECK(arguments("") == Json::object());
  CHECK(arguments(R"("reasoning_effort":"low")") == Json{{"reasoning_effort", "low"}});
  CHECK(arguments(R"("reasoning_effort":"none")")["enable_thinking"] == false);
  CHECK(arguments(
            R"("enable_thinking":true,"chat_template_kwargs":{"enable_thinking":false,"x":1})") ==
        Json{{"enable_thinking", false}, {"x", 1}});
}

TEST_CASE("completion request: a prompt is text or token ids") {
  const auto prompt = [](const std::string& fields) {
    const auto wire =
        parse_completion("{" + fields + "}", {.model = kTinyModel, .options = options()});
    return std::get<chat::RawPrompt>(wire.value().request.input).prompt;
  };
  using Ids = std::vector<gen::TokenId>;
  CHECK(std::get<std::string>(prompt(R"("prompt":"x")")) == "x");
  CHECK(std::get<std::string>(prompt(R"("prompt":["x"])")) == "x");
  CHECK(std::get<Ids>(prompt(R"("prompt":[1,999])")) == Ids{1, 999});
  CHECK(std::get<Ids>(prompt(R"("prompt":[[0]])")) == Ids{0});
  const auto echo = parse_completion(R"({"prompt":"x","echo":true,"suffix":""})",
                                     {.model = kTinyModel, .options = options()});
  CHECK(echo.value().echo == "x");
}

TEST_CASE("chat request: a thinking budget has several names, and the operator's is the default") {
  const auto budget = [](const std::string& fields, std::optional<uint32_t> otherwise = {}) {
    Options rules = options();
    rules.guards.thinking_budget = otherwise;
    const auto wire = parse(with(fields), rules);
    REQUIRE(wire);
    CHECK(wire->ignored.empty());
    return wire->request.guards.thinking_budget;
  };
  CHECK(budget("") == std::nullopt);
  CHECK(budget("", 7) == 7U);
  CHECK(budget(R"("thinking_budget": 100)", 7) == 100U);
  CHECK(budget(R"("thinking_budget": 0)", 7) == 0U);
  CHECK(budget(R"("thinking_budget": -1)", 7) == std::nullopt);
  CHECK(budget(R"("thinking": {"type": "enabled", "budget_tokens": 1024})") == 1024U);
  CHECK(budget(R"("reasoning": {"max_tokens": 50, "effort": "low"})") == 50U);
  CHECK(budget(R"("chat_template_kwargs": {"thinking_budget": 9})") == 9U);
  const auto wire = parse_fields(R"("reasoning": {"effort": "none"})");
  const auto& conversation = std::get<chat::Conversation>(wire->request.input);
  CHECK(conversation.template_arguments["reasoning_effort"] == "none");
  CHECK(conversation.template_arguments["enable_thinking"] == false);
  for (const char* bad : {R"("thinking_budget": -2)", R"("thinking_budget": true)",
                          R"("thinking": {"type": "enabled", "budget_tokens": "x"})",
                          R"("reasoning": {"max_tokens": 1.5})"}) {
    CHECK(!parse_fields(bad));
  }
}

TEST_CASE(
    "chat request: a hesitation penalty is from 0 to 100, and the operator's is the default") {
  Options rules = options();
  rules.guards.hesitation_penalty = 3;
  CHECK(parse(with(""), rules)->request.guards.hesitation_penalty == 3);
  CHECK(parse(with(R"("hesitation_penalty": 0)"), rules)->request.guards.hesitation_penalty == 0);
  const auto wire = parse_fields(R"("hesitation_penalty": 2.5)");
  REQUIRE(wire);
  CHECK(wire->request.guards.hesitation_penalty == 2.5F);
  CHECK(wire->ignored.empty());
  for (const char* bad : {"-1", "100.5", "\"2\"", "true", "[2]"}) {
    CAPTURE(bad);
    const auto refused = parse_fields(R"("hesitation_penalty": )" + std::string(bad));
    REQUIRE(!refused);
    CHECK(refused.error().field == "hesitation_penalty");
  }
}

TEST_CASE("chat request: guards are switched by name, and others keep the operator's setting") {
  Options rules = options();
  rules.guards.repeated_span = rules.guards.tool_loop = true;
  const auto wire =
      parse(with(R"("guards": {"repeated_span": false, "steer_tool_loop": true})"), rules);
  REQUIRE(wire);
  CHECK(wire->request.guards == chat::GuardSettings{.tool_loop = true, .steer_tool_loop = true});
  const auto unknown = parse_fields(R"("guards": {"repeat": false})");
  REQUIRE(!unknown);
  CHECK(unknown.error().message.find("the guards are repeated_span, tool_loop") !=
        std::string::npos);
  CHECK(!parse_fields(R"("guards": {"tool_loop": "steer"})"));
  CHECK(!parse_fields(R"("guards": ["tool_loop"])"));
}

}  // namespace
}  // namespace tandem::protocol::openai
