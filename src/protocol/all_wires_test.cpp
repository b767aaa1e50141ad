// What holds on every wire that generates.
#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "protocol/direct_test.h"

namespace tandem::protocol {
namespace {

struct WireCase {
  const char* path;
  const char* body;       // without its end, and without "stream"
  const char* reasoning;  // where a whole answer counts the tokens of thinking
  const char* failure;    // where the last event of a failed stream has the message
  const char* refusal;    // where a refused request has it
};

constexpr WireCase kWires[] = {
    {"/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}])",
     "/usage/completion_tokens_details/reasoning_tokens", "/error/message", "/error/message"},
    {"/v1/completions", R"({"prompt":"hi")", "/usage/completion_tokens_details/reasoning_tokens",
     "/error/message", "/error/message"},
    {"/v1/responses", R"({"input":"hi")", "/usage/output_tokens_details/reasoning_tokens",
     "/response/error/message", "/error/message"},
    {"/v1/messages", R"({"max_tokens":9,"messages":[{"role":"user","content":"hi"}])",
     "/usage/output_tokens_details/thinking_tokens", "/error/message", "/error/message"},
    {"/api/chat", R"({"messages":[{"role":"user","content":"hi"}])", "/eval_reasoning_count",
     "/error", "/error"},
    {"/api/generate", R"({"prompt":"hi")", "/eval_reasoning_count", "/error", "/error"},
};

std::string body_of(const WireCase& wire, bool stream) {
  return std::string(wire.body) + R"(,"stream":)" + (stream ? "true}" : "false}");
}

/// The last JSON of a stream of events or lines.
Json last_json(const std::string& stream) {
  size_t end = stream.find_last_not_of('\n');
  const size_t begin = stream.rfind('\n', end) + 1;
  std::string line = stream.substr(begin, end + 1 - begin);
  if (line.starts_with("data: ")) line.erase(0, 6);
  return Json::parse(line);
}

chat::Event text(const char* words) {
  return {.choice = 0,
          .body = chat::Delta{.channel = chat::Channel::kText, .text = words, .logprobs = {}}};
}

TEST_CASE("wires: tokens of thinking are counted") {
  for (const WireCase& wire : kWires) {
    CAPTURE(wire.path);
    DirectApi api([](const chat::Request&) {
      return std::vector<chat::Event>{text("Hello"),
                                      {.choice = 0,
                                       .body = chat::End{.reason = chat::FinishReason::kStop,
                                                         .stop_text = {},
                                                         .usage = {.prompt_tokens = 7,
                                                                   .cached_tokens = 3,
                                                                   .completion_tokens = 9,
                                                                   .reasoning_tokens = 5}}}};
    });
    const Json whole = api.post(wire.path, body_of(wire, false));
    CHECK(whole.at(Json::json_pointer(wire.reasoning)) == 5);
  }
}

TEST_CASE("wires: a call that the limit cut off is marked, streamed or not") {
  const std::pair<const char*, const char*> ends[] = {
      {"/v1/chat/completions", "\"finish_reason\":\"length\""},
      {"/v1/responses", "\"reason\":\"max_output_tokens\""},
      {"/v1/messages", "\"stop_reason\":\"max_tokens\""},
      {"/api/chat", "\"done_reason\":\"length\""}};
  for (const auto& [path, end] : ends) {
    const auto wire = std::ranges::find(kWires, std::string_view(path), &WireCase::path);
    for (const bool cut : {false, true}) {
      DirectApi api([cut](const chat::Request&) {
        return std::vector<chat::Event>{
            {.choice = 0, .body = chat::CallStarted{.call = 0, .id = "call_1", .name = "f"}},
            {.choice = 0, .body = chat::CallArguments{.call = 0, .json = "{\"a\": \"b\"}"}},
            {.choice = 0, .body = chat::CallEnded{.call = 0, .is_complete = !cut}},
            {.choice = 0,
             .body = chat::End{.reason = chat::FinishReason::kLength,
                               .stop_text = {},
                               .usage = {},
                               .cut_in_call = cut}}};
      });
      for (const bool stream : {false, true}) {
        CAPTURE(path);
        CAPTURE(stream);
        const std::string answer = api.respond("POST", path, body_of(*wire, stream)).body;
        CAPTURE(answer);
        CHECK(answer.find(end) != std::string::npos);
        CHECK((answer.find("cut_off_call") != std::string::npos) == cut);
      }
    }
  }
}

TEST_CASE("wires: a hesitation penalty is read, its bounds are kept, and its acting is told") {
  for (const WireCase& wire : kWires) {
    CAPTURE(wire.path);
    if (std::string_view(wire.path) == "/v1/completions") continue;  // raw prompts
    DirectApi api([](const chat::Request&) {
      return std::vector<chat::Event>{{.choice = 0,
                                       .body = chat::End{.reason = chat::FinishReason::kStop,
                                                         .stop_text = {},
                                                         .usage = {},
                                                         .guards = {chat::Guard::kHesitation}}}};
    });
    const auto asked = [&](const char* value) {
      return api.respond(
          "POST", wire.path,
          std::string(wire.body) + R"(,"stream":false,"hesitation_penalty":)" + value + "}");
    };
    const net::Response answer = asked("2.5");
    CHECK(answer.status == 200);
    CHECK(answer.body.find("hesitation_penalty") != std::string::npos);
    CHECK(api.service().last_request().guards.hesitation_penalty == 2.5F);
    CHECK(asked("101").status == 400);
    CHECK(asked("-1").status == 400);
  }
}

TEST_CASE("wires: a failure behind the stream's beginning is the wire's own error, and its end") {
  for (const WireCase& wire : kWires) {
    CAPTURE(wire.path);
    DirectApi api([](const chat::Request&) {
      return std::vector<chat::Event>{
          text("Half"),
          {.choice = 0,
           .body = chat::Failed{.error = {ErrorCode::kPeerLost, "it broke"}, .usage = {}}}};
    });
    const net::Response stream = api.respond("POST", wire.path, body_of(wire, true));
    CHECK(stream.status == 200);
    CHECK(stream.body.find("Half") != std::string::npos);
    CHECK(stream.body.find("[DONE]") == std::string::npos);
    CHECK(last_json(stream.body).at(Json::json_pointer(wire.failure)) == "it broke");
    CHECK(api.respond("POST", wire.path, body_of(wire, false)).status >= 503);
  }
}

TEST_CASE("wires: a prompt that is too long is a 400 with both numbers, streamed or not") {
  for (const WireCase& wire : kWires) {
    for (const bool stream : {false, true}) {
      CAPTURE(wire.path);
      DirectApi api;
      api.service().refuse(
          {ErrorCode::kTooLarge, "prompt is too long: 7900 tokens > 4095 maximum", "messages"});
      const net::Response refused = api.respond("POST", wire.path, body_of(wire, stream));
      CHECK(refused.status == 400);
      const Json body = Json::parse(refused.body);
      CHECK(body.at(Json::json_pointer(wire.refusal)) ==
            "prompt is too long: 7900 tokens > 4095 maximum");
      const Json::json_pointer param("/error/param");
      if (std::string_view(wire.refusal) == "/error/message" && body.contains(param)) {
        const bool is_responses = std::string_view(wire.path) == "/v1/responses";
        CHECK(body.at(param) == (is_responses ? "input" : "messages"));
      }
    }
  }
}

TEST_CASE("wires: a body that is no object is a 400 in the wire's own words") {
  for (const WireCase& wire : kWires) {
    for (const char* body : {"", "{", "[]", "null", "3", "\"x\"", "{\"a\":\xFF}"}) {
      CAPTURE(wire.path);
      CAPTURE(body);
      DirectApi api;
      const net::Response refused = api.respond("POST", wire.path, body);
      CHECK(refused.status == 400);
      CHECK(Json::parse(refused.body).at(Json::json_pointer(wire.refusal)).is_string());
    }
  }
}

TEST_CASE("wires: metadata is bounded as the OpenAI API bounds it, in characters") {
  Json many = Json::object();
  for (int i = 0; i < 17; ++i) many[std::to_string(i)] = "x";
  std::string wide;
  for (int i = 0; i < 64; ++i) wide += "\xC3\xA9";
  const struct {
    Json metadata;
    int status;
  } cases[] = {
      {Json{{"a", "b"}}, 200},
      {Json{{wide, std::string(512, 'x')}}, 200},
      {nullptr, 200},
      {Json{{wide + "x", "x"}}, 400},
      {Json{{"a", std::string(513, 'x')}}, 400},
      {Json{{"a", 1}}, 400},
      {many, 400},
      {Json::array(), 400},
  };
  for (const WireCase& wire : kWires) {
    if (std::string_view(wire.path) == "/v1/messages") continue;  // its own: {"user_id"}
    if (std::string_view(wire.path).starts_with("/api/")) continue;
    for (const auto& test : cases) {
      CAPTURE(wire.path);
      CAPTURE(dump(test.metadata));
      DirectApi api([](const chat::Request&) {
        return std::vector<chat::Event>{{.choice = 0, .body = chat::End{}}};
      });
      Json body = Json::parse(body_of(wire, false));
      body["metadata"] = test.metadata;
      const net::Response got = api.respond("POST", wire.path, dump(body));
      CHECK(got.status == test.status);
      if (got.status == 400) CHECK(Json::parse(got.body)["error"]["param"] == "metadata");
    }
  }
}

}  // namespace
}  // namespace tandem::protocol
