#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "net/sse.h"
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
      {.text = "x", .thinking = {}, .logprobs = with_logprobs("").logprobs, .end = {}}};
  CHECK(dump(Json::parse(encoder->whole(answers, kUsage))["choices"][0]["logprobs"]) == expected);
}

TEST_CASE("chat encoder: a whole answer") {
  const auto encoder = make_chat_encoder(head(false, false));
  const std::vector<Answer> answers{
      {.text = "Hi", .thinking = "hm", .logprobs = {}, .end = {}},
      {.text = "",
       .thinking = "",
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
      {.text = "x", .thinking = {}, .logprobs = first.logprobs, .end = {}}};
  const Json whole = Json::parse(encoder->whole(answers, kUsage));
  CHECK(whole["choices"][0]["text"] == "h\xC3\xA9x");
  CHECK(whole["choices"][0]["logprobs"]["text_offset"] == Json::array({2}));
  CHECK(whole["object"] == "text_completion");
}

}  // namespace
}  // namespace tandem::protocol::openai
