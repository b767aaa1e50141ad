#include "protocol/openai/responses_request.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "protocol/errors.h"
#include "protocol/tiny_model_test.h"

namespace tandem::protocol::openai {
namespace {

Result<WireRequest> parse_response(const std::string& body, bool strict = false) {
  Options rules;
  rules.strict_fields = strict;
  return parse_responses(body, {.model = kTinyModel, .options = rules});
}

const chat::Conversation& talk_of(const Result<WireRequest>& wire) {
  return std::get<chat::Conversation>(wire.value().request.input);
}

Json input(const std::string& items) {
  const auto wire = parse_response(R"({"input":)" + items + "}");
  REQUIRE_MESSAGE(wire.has_value(), (wire ? "" : wire.error().message));
  return talk_of(wire).messages;
}

TEST_CASE("responses request: what Codex sends is taken whole") {
  const auto wire = parse_response(
      R"({"model":"org/tiny","input":[
      {"type":"message","role":"developer","id":"a","content":[{"type":"input_text","text":"Base"}]},
      {"type":"message","role":"developer","content":[{"type":"input_text","text":"S"},
                                                      {"type":"input_text","text":"P"}]},
      {"type":"message","role":"user","content":[{"type":"input_text","text":"fix it"}]},
      {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],
       "encrypted_content":null},
      {"type":"message","role":"assistant","id":"msg_1","status":"completed",
       "content":[{"type":"output_text","text":"I look.","annotations":[]}]},
      {"type":"function_call","id":"fc_1","call_id":"c1","name":"exec","arguments":"{ \"cmd\": \"ls\" }"},
      {"type":"custom_tool_call","call_id":"c2","name":"apply_patch","input":"*** Begin"},
      {"type":"function_call","call_id":"c3","namespace":"goals","name":"get","arguments":""},
      {"type":"function_call_output","call_id":"c1","output":"a.txt"},
      {"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"ok"},
        {"type":"input_image","image_url":"data:"}]},
      {"type":"function_call_output","call_id":"c3","output":"unsupported call: x"},
      {"type":"web_search_call","id":"ws","status":"completed"}],
      "tools":[{"type":"function","name":"exec","description":"Runs","strict":false,
                "parameters":{"type":"object","additionalProperties":false}},
        {"type":"custom","name":"apply_patch","description":"Edits",
         "format":{"type":"grammar","syntax":"lark","definition":"start: /x/"}},
        {"type":"namespace","name":"goals","tools":[{"type":"function","name":"get"}]},
        {"type":"web_search","external_web_access":false},{"type":"image_generation"},
        {"type":"local_shell"},{"type":"tool_search","execution":"client"}],
      "tool_choice":"auto","parallel_tool_calls":true,"reasoning":{"effort":"low","summary":"auto"},
      "store":false,"stream":true,"include":["reasoning.encrypted_content"],
      "prompt_cache_key":"k","text":{"verbosity":"low"},"client_metadata":{"x":"y"}})",
      true);
  REQUIRE_MESSAGE(wire.has_value(), (wire ? "" : wire.error().message));
  const chat::Conversation& talk = talk_of(wire);
  CHECK(talk.messages == Json::parse(R"([
    {"role":"developer","content":"Base"},
    {"role":"developer","content":"SP"},
    {"role":"user","content":"fix it"},
    {"role":"assistant","content":"I look.","reasoning_content":"hm","tool_calls":[
      {"id":"c1","type":"function","function":{"name":"exec","arguments":{"cmd":"ls"}}},
      {"id":"c2","type":"function","function":{"name":"apply_patch","arguments":{"input":"*** Begin"}}},
      {"id":"c3","type":"function","function":{"name":"goals__get","arguments":{}}}]},
    {"role":"tool","content":"a.txt","tool_call_id":"c1","name":"exec"},
    {"role":"tool","content":"ok[input_image left out: this model reads text only]",
     "tool_call_id":"c2","name":"apply_patch"},
    {"role":"tool","content":"unsupported call: x","tool_call_id":"c3","name":"goals__get"}])"));
  REQUIRE(talk.tools.size() == 3);
  CHECK(talk.tools[1]["function"]["description"] ==
        "Edits\n\nThe input follows this grammar:\nstart: /x/");
  CHECK(talk.text_rules.at("apply_patch").pattern == "(?:x)");
  CHECK(talk.text_rules.at("apply_patch").field == "tools[1].format.definition");
  CHECK(talk.tools[2]["function"]["name"] == "goals__get");
  CHECK(talk.template_arguments == Json{{"reasoning_effort", "low"}});
  const ToolNames names = names_in(wire->notes);
  CHECK(names.size() == 2);
  CHECK(names.at("apply_patch").custom);
  CHECK(names.at("goals__get").name == "get");
  CHECK(names.at("goals__get").name_space == "goals");
  std::vector<std::string> codes;
  for (const chat::Warning& warning : wire->warnings) codes.push_back(warning.code);
  CHECK(codes == std::vector<std::string>{"tool_left_out", "tool_left_out", "tool_left_out",
                                          "tool_left_out", "left_out_of_tool_result",
                                          "item_left_out"});
}

TEST_CASE(
    "responses request: a custom tool's grammar is a rule, told of, or refused by its place") {
  const auto with = [](const std::string& format) {
    return parse_response(R"({"input":"x","tools":[{"type":"custom","name":"t","format":)" +
                          format + "}]}");
  };
  const auto rule = [&](const std::string& format) {
    const auto wire = with(format);
    REQUIRE_MESSAGE(wire.has_value(), (wire ? "" : wire.error().message));
    CHECK(wire->warnings.empty());
    return talk_of(wire).text_rules.at("t").pattern;
  };
  CHECK(rule(R"({"type":"grammar","syntax":"regex","definition":"a+"})") == "a+");
  CHECK(rule(R"({"type":"grammar","syntax":"lark","definition":"start: \"a\"+"})") == "(?:a)+");
  CHECK(rule(R"({"type":"grammar","grammar":{"syntax":"regex","definition":"b"}})") == "b");
  const auto as_in_chat = parse_response(
      R"({"input":"x","tools":[{"type":"custom","custom":{"name":"t","format":
         {"type":"grammar","grammar":{"syntax":"regex","definition":"c"}}}}]})");
  REQUIRE_MESSAGE(as_in_chat.has_value(), (as_in_chat ? "" : as_in_chat.error().message));
  CHECK(talk_of(as_in_chat).text_rules.at("t").pattern == "c");
  CHECK(talk_of(as_in_chat).text_rules.at("t").field ==
        "tools[0].custom.format.grammar.definition");
  CHECK(talk_of(with(R"({"type":"text"})")).text_rules.empty());
  const auto nested =
      with(R"({"type":"grammar","syntax":"lark","definition":"start: \"(\" start \")\" | \"x\""})");
  REQUIRE(nested);
  CHECK(talk_of(nested).text_rules.empty());
  REQUIRE(nested->warnings.size() == 1);
  CHECK(nested->warnings[0].code == "grammar_not_enforced");
  const auto field = [&](const std::string& format) {
    const auto wire = with(format);
    REQUIRE_FALSE(wire);
    return wire.error().field;
  };
  CHECK(field(R"({"type":"grammar","syntax":"lark","definition":"start: /a(?=b)/"})") ==
        "tools[0].format.definition");
  CHECK(field(R"({"type":"grammar","syntax":"ebnf","definition":"x"})") ==
        "tools[0].format.syntax");
  CHECK(field(R"({"type":"grammar","syntax":"regex"})") == "tools[0].format.definition");
  CHECK(field(R"({"type":"xml"})") == "tools[0].format.type");
}

TEST_CASE("responses request: input is a string, items, or nothing") {
  CHECK(input("\"hi\"") == Json::parse(R"([{"role":"user","content":"hi"}])"));
  CHECK(input(R"([{"role":"user","content":"hi"}])") ==
        Json::parse(R"([{"role":"user","content":"hi"}])"));
  CHECK(input("[]") == Json::parse(R"([{"role":"user","content":""}])"));
  CHECK(parse_response(R"({"input":"","max_output_tokens":1})")->request.max_tokens == 1U);
  const auto instructed = parse_response(R"({"instructions":"Be brief","input":"hi"})");
  CHECK(talk_of(instructed).messages[0] == Json{{"role", "system"}, {"content", "Be brief"}});
}

TEST_CASE("responses request: arguments that are no JSON are shown as they are") {
  CHECK(input(R"([{"type":"function_call","call_id":"a","name":"f","arguments":"{\"a\":"}])") ==
        Json::parse(R"([{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function",
          "function":{"name":"f","arguments":{"unparsed_arguments":"{\"a\":"}}}]}])"));
}

TEST_CASE("responses request: each answer is one message") {
  CHECK(input(R"([
    {"type":"reasoning","summary":[{"type":"summary_text","text":"short"}],"content":null},
    {"type":"function_call","call_id":"a","name":"f","arguments":"{}"},
    {"type":"function_call_output","call_id":"a","output":"1"},
    {"type":"reasoning","summary":[]},
    {"type":"message","role":"assistant","content":"x"},
    {"type":"message","role":"assistant","content":"y"},
    {"type":"reasoning","content":[{"type":"reasoning_text","text":"t"}]},
    {"type":"message","role":"assistant","content":"z"}])") == Json::parse(R"([
    {"role":"assistant","content":"","reasoning_content":"short","tool_calls":[
      {"id":"a","type":"function","function":{"name":"f","arguments":{}}}]},
    {"role":"tool","content":"1","tool_call_id":"a","name":"f"},
    {"role":"assistant","content":"xy"},
    {"role":"assistant","content":"z","reasoning_content":"t"}])"));
}

TEST_CASE("responses request: encrypted content names the answer, and joins what is of one") {
  CHECK(input(R"([
    {"type":"reasoning","content":[{"type":"reasoning_text","text":"a"}],"encrypted_content":"h"},
    {"type":"message","role":"assistant","content":"x"},
    {"type":"reasoning","content":[{"type":"reasoning_text","text":"b"}],"encrypted_content":"h"},
    {"type":"message","role":"assistant","content":"y"},
    {"type":"reasoning","summary":[],"encrypted_content":"other"},
    {"type":"message","role":"assistant","content":"z"}])") == Json::parse(R"([
    {"role":"assistant","content":"xy","reasoning_content":"ab","turn_handle":"h"},
    {"role":"assistant","content":"z","turn_handle":"other"}])"));
  const auto asks = [](const char* include) {
    return parse_response(fmt::format(R"({{"input":"x","include":{}}})", include))
        ->notes["encrypted"];
  };
  CHECK(asks(R"(["reasoning.encrypted_content"])") == true);
  CHECK(asks("[]") == false);
  CHECK(asks("null") == false);
}

TEST_CASE("responses request: tools that come as an item are tools") {
  const auto wire = parse_response(
      R"({"input":[{"type":"additional_tools","tools":[{"type":"custom","name":"exec"}]},
                   {"role":"user","content":"x"}]})");
  CHECK(talk_of(wire).tools[0]["function"]["name"] == "exec");
  CHECK(names_in(wire->notes).at("exec").custom);
}

TEST_CASE("responses request: switches") {
  const auto arguments = [](const std::string& fields) {
    return talk_of(parse_response(R"({"input":"x",)" + fields + "}")).template_arguments;
  };
  CHECK(arguments(R"("reasoning":{"effort":"none"})")["enable_thinking"] == false);
  CHECK(talk_of(parse_response(R"({"input":"x","tools":[{"type":"function","name":"f"}],
                                   "tool_choice":"none"})"))
            .tools.is_null());
  CHECK_FALSE(
      talk_of(parse_response(R"({"input":"x","parallel_tool_calls":false})")).parallel_calls);
  CHECK(parse_response(R"({"input":"x","truncation":"auto"})")->notes["echo"]["truncation"] ==
        "auto");
  CHECK(parse_response(R"({"input":"x","text":{"format":{"type":"text"}}})"));
}

TEST_CASE(
    "responses request: what is kept comes before the input, and not what was said for it alone") {
  const chat::ModelInfo model{.id = "m", .max_context = 100};
  const Options rules;
  const KeptInput kept{.offered = true, .history = Json::parse(R"([
    {"role":"user","content":"one"},
    {"type":"function_call","call_id":"a","name":"f","arguments":"{}"}])")};
  const Json body = Json::parse(
      R"({"input":[{"type":"function_call_output","call_id":"a","output":"1"}],
          "instructions":"Be brief","previous_response_id":"resp_1","store":true})");
  const auto wire = parse_responses(body, {.model = model, .options = rules}, kept);
  REQUIRE_MESSAGE(wire.has_value(), (wire ? "" : wire.error().message));
  CHECK(talk_of(wire).messages == Json::parse(R"([
    {"role":"system","content":"Be brief"},{"role":"user","content":"one"},
    {"role":"assistant","content":"","tool_calls":[
      {"id":"a","type":"function","function":{"name":"f","arguments":{}}}]},
    {"role":"tool","content":"1","tool_call_id":"a","name":"f"}])"));
  const Json& echo = wire->notes["echo"];
  CHECK(echo["store"] == true);
  CHECK(echo["background"] == false);
  CHECK(echo["previous_response_id"] == "resp_1");
  CHECK(echo["instructions"] == "Be brief");
  const auto background = parse_responses(Json::parse(R"({"input":"x","background":true})"),
                                          {.model = model, .options = rules}, kept);
  CHECK(background->notes["echo"]["store"] == true);
}

TEST_CASE("responses request: calls are forced and text is bound, by the names of this wire") {
  const std::string tools = R"({"input":"x","tools":[{"type":"function","name":"f","strict":true},
    {"type":"custom","name":"c"},
    {"type":"namespace","name":"n","tools":[{"type":"function","name":"g"}]}],"tool_choice":)";
  const auto rule = [&](const std::string& choice) {
    return talk_of(parse_response(tools + choice + "}")).calls;
  };
  using Names = std::vector<std::string>;
  CHECK(rule(R"("required")").is_required);
  CHECK(rule(R"({"type":"function","name":"f"})").only == Names{"f"});
  CHECK(rule(R"({"type":"custom","name":"c"})").only == Names{"c"});
  CHECK(rule(R"({"type":"function","name":"g","namespace":"n"})").only == Names{"n__g"});
  const std::string some = R"({"type":"allowed_tools","tools":[{"type":"function","name":"f"}],)";
  CHECK(rule(some + R"("mode":"required"})").only == Names{"f"});
  CHECK_FALSE(rule(some + R"("mode":"auto"})").is_required);
  CHECK(talk_of(parse_response(tools + some + R"("mode":"auto"}})")).tools.size() == 1);
  const auto unknown = parse_response(
      tools +
      R"({"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"g"}]}})");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().message == R"('tool_choice' allows the tool "g", which is not in 'tools')");
  CHECK(talk_of(parse_response(tools + R"("auto"})")).tools[0]["function"]["strict"] == true);
  const auto wire = parse_response(
      R"({"input":"x","text":{"format":{"type":"json_schema","name":"n","strict":true,
          "schema":{"type":"object"}}}})");
  CHECK(wire.value().request.form.schema == Json{{"type", "object"}});
  CHECK(wire->request.form.field == "text.format");
}

TEST_CASE("responses request: every broken rule is refused with its status and field") {
  const struct {
    const char* body;
    int status;
    const char* field;
  } cases[] = {
      {"{", 400, ""},
      {"{}", 400, "input"},
      {R"({"input":7})", 400, "input"},
      {R"({"input":["x"]})", 400, "input[0]"},
      {R"({"input":[{"role":"robot","content":"x"}]})", 400, "input[0].role"},
      {R"({"input":[{"role":"user"}]})", 400, "input[0].content"},
      {R"({"input":[{"role":"user","content":7}]})", 400, "input[0].content"},
      {R"({"input":[{"role":"user","content":[{"type":"input_image"}]}]})", 400,
       "input[0].content[0].type"},
      {R"({"input":[{"type":"function_call","arguments":"{}"}]})", 400, "input[0].name"},
      {R"({"input":[{"type":"function_call_output","output":7}]})", 400, "input[0].output"},
      {R"({"input":[{"role":"user","content":"x","call_id":{}}]})", 400, "input[0].call_id"},
      {R"({"input":[{"type":"reasoning","summary":"x"}]})", 400, "input[0].summary"},
      {R"({"input":"x","tools":{}})", 400, "tools"},
      {R"({"input":"x","tools":["f"]})", 400, "tools[0]"},
      {R"({"input":"x","tools":[{"type":"function"}]})", 400, "tools[0].name"},
      {R"({"input":"x","tools":[{"type":"namespace","name":"n","tools":[7]}]})", 400,
       "tools[0].tools[0]"},
      {R"({"input":"x","tool_choice":"required"})", 400, "tool_choice"},
      {R"({"input":"x","tool_choice":{"type":"function","name":"f"}})", 400, "tool_choice"},
      {R"({"input":"x","tool_choice":"maybe"})", 400, "tool_choice"},
      {R"({"input":"x","tools":[{"type":"function","name":"f"}],
           "tool_choice":{"type":"web_search"}})",
       400, "tool_choice.type"},
      {R"({"input":"x","text":{"format":{"type":"json_schema"}}})", 400, "text.format.schema"},
      {R"({"input":"x","text":{"format":{"type":"xml"}}})", 400, "text.format.type"},
      {R"({"input":"x","previous_response_id":"resp_none"})", 404, "previous_response_id"},
      {R"({"input":"x","background":true})", 400, "background"},
      {R"({"input":"x","conversation":"c"})", 400, "conversation"},
      {R"({"input":"x","prompt":{"id":"p"}})", 400, "prompt"},
      {R"({"input":"x","background":true,"store":false})", 400, "background"},
      {R"({"input":"x","store":"yes"})", 400, "store"},
      {R"({"input":"x","truncation":"sometimes"})", 400, "truncation"},
      {R"({"input":"x","max_tool_calls":0})", 400, "max_tool_calls"},
      {R"({"input":"x","metadata":{"a":1}})", 400, "metadata"},
      {R"({"input":"x","include":"all"})", 400, "include"},
      {R"({"input":[{"type":"item_reference","id":"msg_1"}]})", 404, "input[0]"},
      {R"({"input":"x","max_output_tokens":0})", 400, "max_output_tokens"},
      {R"({"input":"x","reasoning":{"effort":1}})", 400, "reasoning.effort"},
      {R"({"input":"x","model":"gpt-9"})", 404, "model"},
  };
  for (const auto& test : cases) {
    CAPTURE(test.body);
    const auto wire = parse_response(test.body);
    REQUIRE_FALSE(wire);
    CHECK(status_of(wire.error()) == test.status);
    CHECK(wire.error().field == test.field);
  }
}

}  // namespace
}  // namespace tandem::protocol::openai
