#include "protocol/anthropic/messages_request.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "protocol/anthropic/errors.h"
#include "protocol/tiny_model_test.h"

namespace tandem::protocol::anthropic {
namespace {

Result<WireRequest> parse(const std::string& body) {
  Options options;
  options.aliases = {"tiny"};
  return parse_messages(body, {.model = kTinyModel, .options = options});
}

Result<WireRequest> parse_fields(const std::string& fields) {
  return parse(R"({"max_tokens":9,"messages":[{"role":"user","content":"hi"}],)" + fields + "}");
}

const chat::Conversation& conversation_of(const Result<WireRequest>& wire) {
  return std::get<chat::Conversation>(wire.value().request.input);
}

/// The messages that a list of them becomes.
Json read(const std::string& messages) {
  const auto wire = parse(R"({"max_tokens":9,"messages":)" + messages + "}");
  REQUIRE_MESSAGE(wire.has_value(), (wire ? "" : wire.error().message));
  return conversation_of(wire).messages;
}

TEST_CASE("messages request: every field reaches the request") {
  const auto wire = parse_fields(
      R"("model":"tiny","stream":true,"temperature":0.5,"top_p":0.9,"top_k":40,
         "stop_sequences":["a","b"],"metadata":{"user_id":"{\"device\":1}"},
         "context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},
         "service_tier":"auto","cache_control":{"type":"ephemeral"},"seed":4)");
  REQUIRE(wire);
  CHECK(wire->model == "tiny");
  CHECK(wire->stream);
  CHECK(wire->ignored.empty());
  CHECK(wire->request.max_tokens == 9);
  CHECK(wire->request.sampling.temperature == 0.5F);
  CHECK(wire->request.sampling.top_k == 40);
  CHECK(wire->request.stop == std::vector<std::string>{"a", "b"});
  CHECK(wire->request.seed == 4U);
  CHECK(conversation_of(wire).template_arguments == Json::object());
  CHECK_FALSE(conversation_of(wire).continues_last_message);
  CHECK(parse_fields(R"("frobnicate":1)")->ignored == std::vector<std::string>{"frobnicate"});
}

TEST_CASE("messages request: blocks become what templates read") {
  CHECK(read(R"([
    {"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},
                              {"type":"text","text":"b"}]},
    {"role":"system","content":"be brief"},
    {"role":"assistant","content":[
      {"type":"thinking","thinking":" hm\n","signature":""},
      {"type":"redacted_thinking","data":"x"},
      {"type":"text","text":"I "},{"type":"text","text":"look."},
      {"type":"tool_use","id":"t1","name":"Read","input":{"z":1,"a":null}},
      {"type":"tool_use","id":"t2","name":"Bash","input":{}}]},
    {"role":"user","content":[
      {"type":"text","text":"go on"},
      {"tool_use_id":"t1","type":"tool_result","content":"1: x"},
      {"type":"tool_result","is_error":true,"tool_use_id":"t2",
       "content":[{"type":"text","text":"exit 1"},{"type":"text","text":"no such file"}]}]},
    {"role":"assistant","content":"done"},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}]}])") == Json::parse(R"([
    {"role":"user","content":"a\n\nb"},
    {"role":"system","content":"be brief"},
    {"role":"assistant","content":"I look.","reasoning_content":" hm\n","turn_handle":"x","tool_calls":[
      {"id":"t1","type":"function","function":{"name":"Read","arguments":{"z":1,"a":null}}},
      {"id":"t2","type":"function","function":{"name":"Bash","arguments":{}}}]},
    {"role":"tool","content":"1: x","tool_call_id":"t1","name":"Read"},
    {"role":"tool","content":"Error: exit 1\n\nno such file","tool_call_id":"t2","name":"Bash"},
    {"role":"user","content":"go on"},
    {"role":"assistant","content":"done"},
    {"role":"tool","content":"","tool_call_id":"t1","name":"Read"}])"));
}

TEST_CASE("messages request: a text block and a string are the same, with or without cache marks") {
  const Json plain = read(R"([{"role":"user","content":"x"}])");
  CHECK(plain == read(R"([{"role":"user","content":[{"type":"text","text":"x"}]}])"));
  CHECK(plain == read(R"([{"role":"user","content":[{"text":"x","type":"text",
                           "cache_control":{"type":"ephemeral","ttl":"1h"}}]}])"));
}

TEST_CASE("messages request: errors of tools are told once") {
  const auto text_of = [](const std::string& content) {
    return read(R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"t",
                     "is_error":true,"content":)" +
                content + "}]}]")[0]["content"];
  };
  CHECK(text_of(R"("not found")") == "Error: not found");
  CHECK(text_of(R"("Error: not found")") == "Error: not found");
  CHECK(text_of(R"("<tool_use_error>no</tool_use_error>")") ==
        "<tool_use_error>no</tool_use_error>");
  CHECK(text_of("null") == "Error");
}

TEST_CASE("messages request: the system text is a string or blocks, without the billing line") {
  const auto system_of = [](const std::string& system) {
    return conversation_of(parse_fields("\"system\":" + system)).messages[0];
  };
  const Json expected{{"role", "system"}, {"content", "You are.\n\nRules"}};
  for (const char* line : {"x-anthropic-billing-header: cc_version=2.1.197.abc; cch=aaaaa;",
                           "x-anthropic-billing-header: cc_version=2.1.197.abc; cch=bbbbb;"}) {
    const std::string block = R"({"type":"text","text":")" + std::string(line) + "\"}";
    CHECK(system_of("[" + block + R"(,{"type":"text","text":"You are.",
                    "cache_control":{"type":"ephemeral"}},{"type":"text","text":"Rules"}])") ==
          expected);
    CHECK(system_of("\"" + std::string(line) + R"(\nYou are.\n\nRules")") == expected);
    CHECK(system_of("[" + block + "]")["role"] == "user");
  }
}

TEST_CASE("messages request: both dialects of thinking are taken") {
  const auto arguments = [](const std::string& fields) {
    return conversation_of(parse_fields(fields)).template_arguments;
  };
  CHECK(arguments(R"("thinking":{"type":"adaptive"},"output_config":{"effort":"high"})") ==
        Json{{"reasoning_effort", "high"}});
  CHECK(arguments(R"("output_config":{"effort":"max"})") == Json{{"reasoning_effort", "high"}});
  CHECK(
      arguments(R"("thinking":{"type":"enabled","budget_tokens":31999,"display":"summarized"})") ==
      Json{{"enable_thinking", true}});
  CHECK(arguments(R"("thinking":{"type":"disabled"})") == Json{{"enable_thinking", false}});
}

TEST_CASE("messages request: tools keep their schemas, in their order") {
  const auto wire = parse_fields(
      R"("tools":[
        {"name":"Read","description":"Reads","input_schema":{"$schema":"s","type":"object",
          "properties":{"b":{},"a":{}},"additionalProperties":false},"eager_input_streaming":true},
        {"type":"web_search_20250305","name":"web_search","max_uses":5},
        {"type":"custom","name":"Ping","cache_control":{"type":"ephemeral"}}],
        "tool_choice":{"type":"auto","disable_parallel_tool_use":true})");
  REQUIRE(wire);
  const chat::Conversation& talk = conversation_of(wire);
  CHECK(dump(talk.tools) ==
        R"([{"type":"function","function":{"name":"Read","description":"Reads","parameters":)"
        R"({"$schema":"s","type":"object","properties":{"b":{},"a":{}},)"
        R"("additionalProperties":false}}},{"type":"function","function":{"name":"Ping",)"
        R"("parameters":{"type":"object","properties":{}}}}])");
  CHECK_FALSE(talk.parallel_calls);
  REQUIRE(wire->warnings.size() == 1);
  CHECK(wire->warnings[0].message == "tools of type \"web_search_20250305\" are not offered here");
  CHECK(conversation_of(parse_fields(R"("tools":[{"name":"f"}],"tool_choice":{"type":"none"})"))
            .tools.is_null());
  CHECK(conversation_of(parse_fields(R"("tools":[])")).tools.is_null());
}

TEST_CASE("messages request: a last message of the assistant is gone on with, calls are not") {
  const auto goes_on = [](const std::string& last) {
    return conversation_of(parse(R"({"messages":[{"role":"user","content":"x"},)" + last + "]}"))
        .continues_last_message;
  };
  CHECK(goes_on(R"({"role":"assistant","content":"The answer is"})"));
  CHECK_FALSE(goes_on(R"({"role":"assistant","content":[]})"));
  CHECK_FALSE(goes_on(
      R"({"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]})"));
}

TEST_CASE("messages request: what is not text is named in results and refused elsewhere") {
  const auto wire = parse(R"({"messages":[{"role":"user","content":[
    {"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"seen"},
      {"type":"image","source":{"type":"base64","data":"x"}},
      {"type":"document","source":{"type":"base64"}}]}]},
    {"role":"assistant","content":[
      {"type":"server_tool_use","id":"s","name":"web_search","input":{}},
      {"type":"web_search_tool_result","tool_use_id":"s","content":[]},
      {"type":"text","text":"found"}]},{"role":"user","content":"so"}]})");
  REQUIRE(wire);
  const Json& messages = conversation_of(wire).messages;
  CHECK(messages[0]["content"] ==
        "seen\n\n[image left out: this model reads text only]\n\n"
        "[document left out: this model reads text only]");
  CHECK(messages[1] == Json{{"role", "assistant"}, {"content", "found"}});
  REQUIRE(wire->warnings.size() == 2);
  CHECK(wire->warnings[0].code == "left_out_of_tool_result");
  CHECK(wire->warnings[1].code == "left_out_of_answer");
}

TEST_CASE("messages request: documents and search results that are text are read") {
  CHECK(read(R"([{"role":"user","content":[
    {"type":"document","title":"T","context":"C","source":{"type":"text","data":"D"}},
    {"type":"document","source":{"type":"content","content":[{"type":"text","text":"E"}]}},
    {"type":"search_result","title":"S","source":"http://s","content":[{"type":"text","text":"F"}]}
    ]}])")[0]["content"] == "T\n\nC\n\nD\n\nE\n\nS\nhttp://s\n\nF");
}

TEST_CASE("messages request: a format binds the answer, at either place") {
  for (const char* fields :
       {R"("output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}})",
        R"("output_format":{"type":"json_schema","schema":{"type":"object"}})"}) {
    const auto wire = parse_fields(fields);
    CHECK(wire.value().warnings.empty());
    CHECK(wire->request.form.kind == chat::AnswerForm::Kind::kJsonSchema);
    CHECK(wire->request.form.schema == Json{{"type", "object"}});
  }
}

TEST_CASE("messages request: any tool, or a named one, must be called; strict is the schema's") {
  const auto talk = [](const std::string& choice) {
    return conversation_of(parse_fields(
        R"("tools":[{"name":"f"},{"name":"g","strict":true}],"tool_choice":)" + choice));
  };
  CHECK(talk(R"({"type":"any"})").calls.is_required);
  CHECK(talk(R"({"type":"any"})").calls.only.empty());
  CHECK(talk(R"({"type":"tool","name":"g"})").calls.only == std::vector<std::string>{"g"});
  CHECK_FALSE(talk(R"({"type":"auto"})").calls.is_required);
  CHECK(talk(R"({"type":"auto"})").tools[1]["function"]["strict"] == true);
  CHECK_FALSE(talk(R"({"type":"auto"})").tools[0]["function"].contains("strict"));
}

/// Lines "status type field | fields added to a request, or "body" and a whole body".
TEST_CASE("messages request: every broken rule is refused with its status, type and field") {
  std::ifstream file(std::string(TANDEM_SOURCE_DIR) +
                     "/src/protocol/anthropic/testdata/refused_messages.txt");
  std::string line;
  size_t count = 0;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    CAPTURE(line);
    ++count;
    const size_t bar = line.find(" | ");
    std::istringstream words(line.substr(0, bar));
    int status = 0;
    std::string type;
    std::string field;
    words >> status >> type >> field;
    const std::string fields = line.substr(bar + 3);
    const auto wire = fields.starts_with("body ") ? parse(fields.substr(5)) : parse_fields(fields);
    REQUIRE_FALSE(wire);
    CHECK(status_of(wire.error()) == status);
    CHECK(error_body(wire.error())["error"]["type"] == type);
    CHECK((wire.error().field.empty() ? "-" : wire.error().field) == field);
    CHECK(wire.error().message.size() < 600);
  }
  CHECK(count > 40);
}

TEST_CASE(
    "messages request: who goes on with a conversation held elsewhere is told to send it whole") {
  const auto wire =
      parse_fields(R"("thread": {"type": "continue", "previous_message_id": "msg_1"})");
  REQUIRE_FALSE(wire);
  CHECK(status_of(wire.error()) == 404);
  CHECK(error_body(wire.error())["error"]["details"]["error_code"] == "thread_not_found");
  CHECK(parse_fields(R"("thread": {"type": "create"})"));
  CHECK_FALSE(parse_fields(R"("thread": {"type": 1})"));
}

TEST_CASE("anthropic errors: each kind has its status and type") {
  const struct {
    Error error;
    int status;
    const char* type;
    bool retry;
  } cases[] = {
      {{ErrorCode::kInvalid, "m"}, 400, "invalid_request_error", false},
      {{ErrorCode::kUnauthorized, "m"}, 401, "authentication_error", false},
      {{ErrorCode::kForbidden, "m"}, 403, "permission_error", false},
      {{ErrorCode::kNotFound, "m"}, 404, "not_found_error", false},
      {{ErrorCode::kTooLarge, "m", "messages"}, 400, "invalid_request_error", false},
      {{ErrorCode::kTooLarge, "m"}, 413, "request_too_large", false},
      {{ErrorCode::kBusy, "m"}, 429, "rate_limit_error", true},
      {{ErrorCode::kUnavailable, "m"}, 529, "overloaded_error", true},
      {{ErrorCode::kPeerLost, "m"}, 529, "overloaded_error", true},
      {{ErrorCode::kDeadline, "m"}, 504, "timeout_error", false},
      {{ErrorCode::kInternal, "m"}, 500, "api_error", false},
  };
  for (const auto& test : cases) {
    const net::Response response = error_response(test.error);
    CAPTURE(test.type);
    CHECK(response.status == test.status);
    CHECK(response.body ==
          R"({"type":"error","error":{"type":")" + std::string(test.type) + R"(","message":"m"}})");
    CHECK(net::find_header(response.headers, "retry-after").empty() == !test.retry);
  }
}

TEST_CASE("anthropic errors: faults found before a handler have the same types") {
  const struct {
    int given;
    int status;
    const char* type;
  } cases[] = {{401, 401, "authentication_error"},
               {405, 405, "invalid_request_error"},
               {413, 413, "request_too_large"},
               {503, 529, "overloaded_error"}};
  for (const auto& test : cases) {
    CAPTURE(test.given);
    net::Response fault = net::fault(test.given, "code", "m");
    restate_fault(fault);
    CHECK(fault.status == test.status);
    CHECK(fault.body ==
          R"({"type":"error","error":{"type":")" + std::string(test.type) + R"(","message":"m"}})");
  }
}

}  // namespace
}  // namespace tandem::protocol::anthropic
