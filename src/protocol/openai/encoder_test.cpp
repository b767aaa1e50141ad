#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "net/sse.h"
#include "protocol/encoder_stream_test.h"
#include "protocol/json.h"
#include "protocol/openai/chat_encoder.h"
#include "protocol/openai/completion_encoder.h"

namespace tandem::protocol::openai {
namespace {

AnswerHead head(bool usage, bool logprobs) {
  return {.id = "chatcmpl-1",
          .model = "m",
          .fingerprint = "fp",
          .created = 5,
          .include_usage = usage,
          .logprobs = logprobs};
}

const chat::Usage kUsage{
    .prompt_tokens = 10, .cached_tokens = 4, .completion_tokens = 3, .reasoning_tokens = 1};

chat::Delta text(std::string value) {
  return {.channel = chat::Channel::kText, .text = std::move(value), .logprobs = {}};
}

chat::Delta with_logprobs(std::string value) {
  chat::Delta delta = text(std::move(value));
  delta.logprobs = {{.token = {.bytes = "\xF0\x9F", .logprob = -0.5F},
                     .top = {{.bytes = "a", .logprob = -0.25F},
                             {.bytes = "b", .logprob = -std::numeric_limits<float>::infinity()}}}};
  return delta;
}

Block block(Block::Kind kind, std::string value) {
  return {.kind = kind, .text = std::move(value), .id = {}, .name = {}};
}

/// Calls in a braced list happen in order, unlike operands of +.
std::string joined(std::initializer_list<std::string> pieces) {
  std::string out;
  for (const std::string& piece : pieces) out += piece;
  return out;
}

std::vector<std::string> data_of(const std::string& bytes) {
  net::SseParser parser;
  std::vector<std::string> out;
  for (const net::SseEvent& event : parser.feed(bytes)) out.push_back(event.data);
  return out;
}

TEST_CASE("chat encoder: a stream is role, content, finish, usage, done") {
  const auto encoder = make_chat_encoder(head(true, false));
  const std::string bytes = joined(
      {encoder->delta(0, {.channel = chat::Channel::kThinking, .text = "h\"m", .logprobs = {}}),
       encoder->delta(0, text("Hi\n\xF0\x9F\x98\x80")),
       encoder->end(0, {.reason = chat::FinishReason::kLength, .stop_text = {}, .usage = kUsage}),
       encoder->close(kUsage)});
  const std::string start =
      R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"m",)"
      R"("system_fingerprint":"fp","choices":[)";
  const auto chunk = [&](const std::string& delta, const std::string& finish) {
    return start + R"({"index":0,"delta":)" + delta + R"(,"logprobs":null,"finish_reason":)" +
           finish + R"(}],"usage":null})";
  };
  CHECK(data_of(bytes) ==
        std::vector<std::string>{
            chunk(R"({"role":"assistant","content":""})", "null"),
            chunk(R"({"reasoning":"h\"m","reasoning_content":"h\"m"})", "null"),
            chunk("{\"content\":\"Hi\\n\xF0\x9F\x98\x80\"}", "null"), chunk("{}", "\"length\""),
            start + R"(],"usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13,)"
                    R"("prompt_tokens_details":{"cached_tokens":4},)"
                    R"("completion_tokens_details":{"reasoning_tokens":1}}})",
            "[DONE]"});
}

TEST_CASE("chat encoder: without include_usage there is none, and choices open by themselves") {
  const auto encoder = make_chat_encoder(head(false, false));
  const std::string bytes =
      joined({encoder->delta(1, text("b")), encoder->delta(0, text("a")), encoder->end(1, {}),
              encoder->end(0, {}), encoder->close(kUsage)});
  std::vector<std::pair<int, std::string>> seen;
  for (const std::string& data : data_of(bytes)) {
    CHECK(data.find("usage") == std::string::npos);
    if (data == "[DONE]") continue;
    const Json choice = Json::parse(data)["choices"][0];
    seen.emplace_back(choice["index"], dump(choice["delta"]));
  }
  const std::string role = R"({"role":"assistant","content":""})";
  CHECK(seen == std::vector<std::pair<int, std::string>>{{1, role},
                                                         {1, R"({"content":"b"})"},
                                                         {0, role},
                                                         {0, R"({"content":"a"})"},
                                                         {1, "{}"},
                                                         {0, "{}"}});
}

TEST_CASE("chat encoder: logprobs are those of the drawn token, with bytes and the sorted top") {
  const std::string expected =
      R"({"content":[{"token":")"
      "\xEF\xBF\xBD"
      R"(","logprob":-0.5,"bytes":[240,159],"top_logprobs":[)"
      R"({"token":"a","logprob":-0.25,"bytes":[97]},{"token":"b","logprob":-9999.0,"bytes":[98]}]}],)"
      R"("refusal":null})";
  const auto encoder = make_chat_encoder(head(false, true));
  const auto data = data_of(encoder->delta(0, with_logprobs("")));
  REQUIRE(data.size() == 2);
  CHECK(dump(Json::parse(data[1])["choices"][0]["logprobs"]) == expected);
  const std::vector<Answer> answers{
      {.blocks = {}, .logprobs = with_logprobs("").logprobs, .end = {}}};
  CHECK(dump(Json::parse(encoder->whole(answers, kUsage))["choices"][0]["logprobs"]) == expected);
}

TEST_CASE("chat encoder: a whole answer") {
  const auto encoder = make_chat_encoder(head(false, false));
  const std::vector<Answer> answers{
      {.blocks = {block(Block::Kind::kThinking, "hm"), block(Block::Kind::kText, "Hi")},
       .logprobs = {},
       .end = {}},
      {.blocks = {},
       .logprobs = {},
       .end = {.reason = chat::FinishReason::kLength, .stop_text = {}, .usage = {}}}};
  CHECK(encoder->whole(answers, kUsage) ==
        R"({"id":"chatcmpl-1","object":"chat.completion","created":5,"model":"m",)"
        R"("system_fingerprint":"fp","choices":[{"index":0,"message":{"role":"assistant",)"
        R"("content":"Hi","refusal":null,"reasoning":"hm","reasoning_content":"hm"},)"
        R"("logprobs":null,"finish_reason":"stop"},{"index":1,"message":{"role":"assistant",)"
        R"("content":"","refusal":null},"logprobs":null,"finish_reason":"length"}],)"
        R"("usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13,)"
        R"("prompt_tokens_details":{"cached_tokens":4},)"
        R"("completion_tokens_details":{"reasoning_tokens":1}}})");
}

/// An answer with text, two calls and thinking between them, its arguments cut at `cut`.
std::vector<chat::Event> calling(const std::string& arguments, size_t cut) {
  std::vector<chat::Event> out;
  const auto add = [&](auto body) { out.push_back({.choice = 0, .body = std::move(body)}); };
  add(text("Let me"));
  add(chat::CallStarted{.call = 0, .id = "call_\"a", .name = "read"});
  add(chat::CallArguments{.call = 0, .json = arguments.substr(0, cut)});
  add(chat::CallArguments{.call = 0, .json = arguments.substr(cut)});
  add(chat::CallEnded{.call = 0});
  add(chat::Delta{.channel = chat::Channel::kThinking, .text = "and", .logprobs = {}});
  add(chat::CallStarted{.call = 1, .id = "call_b", .name = "ls"});
  add(chat::CallEnded{.call = 1});
  add(chat::End{.reason = chat::FinishReason::kToolCalls, .stop_text = {}, .usage = kUsage});
  return out;
}

/// Puts a stream's deltas together as clients do.
Json message_of(const std::string& bytes) {
  Json message{{"role", ""}, {"content", ""}, {"reasoning_content", ""}};
  for (const std::string& data : data_of(bytes)) {
    if (data == "[DONE]") continue;
    const Json choice = Json::parse(data)["choices"][0];
    if (!choice["finish_reason"].is_null()) message["finish_reason"] = choice["finish_reason"];
    for (const auto& [name, value] : choice["delta"].items()) {
      if (name != "tool_calls") {
        message[name] = message.value(name, "") + value.get<std::string>();
        continue;
      }
      for (const Json& piece : value) {
        Json& call = message["tool_calls"][piece["index"].get<size_t>()];
        if (piece.contains("id")) call = Json{{"id", piece["id"]}, {"type", piece["type"]}};
        const auto kind = call["type"].get<std::string>();
        if (piece[kind].contains("name")) call[kind]["name"] = piece[kind]["name"];
        const char* const content = kind == "custom" ? "input" : "arguments";
        call[kind][content] =
            call[kind].value(content, "") + piece[kind][content].get<std::string>();
      }
    }
  }
  return message;
}

/// The message of an answer with these arguments, which is the same whole and streamed in any cut.
Json message_in_any_cut(const std::string& arguments, const std::set<std::string>& custom) {
  Json message;
  for (size_t cut = 0; cut <= arguments.size(); ++cut) {
    CAPTURE(cut);
    const auto encoder = make_chat_encoder(head(false, false), custom);
    const std::vector<chat::Event> events = calling(arguments, cut);
    Answer answer;
    for (const chat::Event& event : events) answer.add(event);
    message = message_of(streamed(*encoder, events, kUsage));
    const Json choice = Json::parse(encoder->whole({answer}, kUsage))["choices"][0];
    CHECK(choice["finish_reason"] == message["finish_reason"]);
    for (const char* name : {"tool_calls", "content", "reasoning_content"}) {
      CHECK(choice["message"][name] == message[name]);
    }
  }
  return message;
}

TEST_CASE("chat encoder: calls are the same streamed in any cut and whole") {
  const std::string arguments = R"({"path": "a \"b\"", "n": [1, 2e3]})";
  const Json message = message_in_any_cut(arguments, {});
  CHECK(message["finish_reason"] == "tool_calls");
  Json read{{"name", "read"}, {"arguments", arguments}};
  CHECK(message["tool_calls"][0] ==
        Json{{"id", "call_\"a"}, {"type", "function"}, {"function", std::move(read)}});
  CHECK(message["tool_calls"][1]["function"]["arguments"] == "{}");
}

TEST_CASE("chat encoder: what a custom tool is given is the same streamed in any cut and whole") {
  const Json message = message_in_any_cut(R"({"input": "*** Begin\n+\u00e9 \"x\"\n"})", {"read"});
  CHECK(message["finish_reason"] == "tool_calls");
  CHECK(message["tool_calls"] == Json::parse(R"([{"id":"call_\"a","type":"custom","custom":
                          {"name":"read","input":"*** Begin\n+\u00e9 \"x\"\n"}},
                        {"id":"call_b","type":"function","function":
                          {"name":"ls","arguments":"{}"}}])"));
}

TEST_CASE("chat encoder: texts of custom tools of several choices do not mix") {
  const auto encoder = make_chat_encoder(head(false, false), {"t"});
  const auto texts = [&](const std::string& bytes) {
    std::vector<std::string> out;
    for (const std::string& data : data_of(bytes)) {
      const Json choice = Json::parse(data)["choices"][0];
      if (!choice["delta"].contains("tool_calls")) continue;
      out.push_back(choice["delta"]["tool_calls"][0]["custom"]["input"]);
    }
    return out;
  };
  std::string bytes;
  for (uint32_t choice = 0; choice < 2; ++choice) {
    bytes += encoder->call_started(choice, {.call = 0, .id = "c", .name = "t"});
  }
  for (const char* piece : {R"({"input": "a)", "b", "\"}"}) {
    for (uint32_t choice = 0; choice < 2; ++choice) {
      bytes += encoder->call_arguments(choice, {.call = 0, .json = piece});
    }
  }
  for (uint32_t choice = 0; choice < 2; ++choice) {
    bytes += encoder->call_ended(choice, {.call = 0});
  }
  CHECK(texts(bytes) == std::vector<std::string>{"", "", "a", "a", "b", "b"});
}

TEST_CASE("chat encoder: a call's first chunk has index, id, type and name") {
  const auto encoder = make_chat_encoder(head(false, false));
  const auto data = data_of(encoder->call_started(0, {.call = 2, .id = "c", .name = "f"}));
  REQUIRE(data.size() == 2);
  CHECK(
      dump(Json::parse(data[1])["choices"][0]["delta"]) ==
      R"({"tool_calls":[{"index":2,"id":"c","type":"function","function":{"name":"f","arguments":""}}]})");
}

TEST_CASE("chat encoder: an answer of calls alone has null content") {
  Answer answer;
  answer.add({.choice = 0, .body = chat::CallStarted{.call = 0, .id = "c", .name = "f"}});
  answer.add({.choice = 0, .body = chat::CallEnded{.call = 0}});
  const auto encoder = make_chat_encoder(head(false, false));
  const Json message = Json::parse(encoder->whole({answer}, kUsage))["choices"][0]["message"];
  CHECK(message["content"].is_null());
  CHECK(message["tool_calls"][0]["function"]["arguments"] == "{}");
}

TEST_CASE("chat encoder: warnings come once, in the first chunk or the whole answer") {
  AnswerHead warned = head(true, false);
  warned.warnings = {{.code = "c", .message = "m"}};
  const auto encoder = make_chat_encoder(warned);
  const std::string bytes =
      joined({encoder->delta(0, text("a")), encoder->delta(1, text("b")), encoder->end(0, {})});
  const auto data = data_of(bytes);
  for (size_t i = 0; i < data.size(); ++i) {
    CHECK(Json::parse(data[i]).contains("warnings") == (i == 0));
  }
  const std::string expected = R"([{"code":"c","message":"m"}])";
  CHECK(dump(Json::parse(data[0])["warnings"]) == expected);
  CHECK(dump(Json::parse(encoder->whole({Answer{}}, kUsage))["warnings"]) == expected);
}

TEST_CASE("completion encoder: logprobs in the older shape, offsets go on over pieces") {
  const auto encoder = make_completion_encoder(head(false, true), "h\xC3\xA9");
  chat::Delta first = text("\xC3\xA4");
  first.logprobs = {{.token = {.bytes = "\xC3\xA4", .logprob = -1}, .top = {}}};
  chat::Delta second = text("b");
  second.logprobs = {
      {.token = {.bytes = "b", .logprob = -2}, .top = {{.bytes = "b", .logprob = -2}}}};
  const auto data = data_of(joined({encoder->delta(0, first), encoder->delta(0, second),
                                    encoder->end(0, {}), encoder->close(kUsage)}));
  REQUIRE(data.size() == 5);
  CHECK(Json::parse(data[0])["choices"][0]["text"] == "h\xC3\xA9");
  CHECK(dump(Json::parse(data[2])) ==
        R"({"id":"chatcmpl-1","object":"text_completion","created":5,"model":"m",)"
        R"("system_fingerprint":"fp","choices":[{"index":0,"text":"b","logprobs":{"tokens":["b"],)"
        R"("token_logprobs":[-2.0],"top_logprobs":[{"b":-2.0}],"text_offset":[3]},)"
        R"("finish_reason":null}]})");
  CHECK(Json::parse(data[3])["choices"][0]["finish_reason"] == "stop");
  CHECK(data[4] == "[DONE]");
  const std::vector<Answer> answers{
      {.blocks = {block(Block::Kind::kText, "x")}, .logprobs = first.logprobs, .end = {}}};
  const Json whole = Json::parse(encoder->whole(answers, kUsage));
  CHECK(whole["choices"][0]["text"] == "h\xC3\xA9x");
  CHECK(whole["choices"][0]["logprobs"]["text_offset"] == Json::array({2}));
  CHECK(whole["object"] == "text_completion");
}

TEST_CASE("chat encoder: the guards that acted are told beside the finish reason") {
  const chat::End guarded{.stop_text = {},
                          .usage = kUsage,
                          .guards = {chat::Guard::kThinkingBudget, chat::Guard::kRepeatedSpan}};
  const Json names = Json::array({"thinking_budget", "repeated_span"});
  auto encoder = make_chat_encoder(head(false, false));
  const auto chunks = data_of(encoder->end(0, guarded));
  const Json choice = Json::parse(chunks.back())["choices"][0];
  CHECK(choice["finish_reason"] == "stop");
  CHECK(choice["finish_detail"] == names);
  Answer answer;
  answer.add({.choice = 0, .body = guarded});
  const Json whole = Json::parse(encoder->whole({answer}, kUsage));
  CHECK(whole["choices"][0]["finish_detail"] == names);
  CHECK(encoder->end(1, {}).find("finish_detail") == std::string::npos);
}

}  // namespace
}  // namespace tandem::protocol::openai
