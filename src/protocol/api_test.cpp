// The wires over loopback, in front of a scripted service.
#include "protocol/api.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <future>

#include "chat/fake_service_test.h"
#include "net/client.h"
#include "net/raw_socket_test.h"
#include "net/server.h"
#include "protocol/json.h"
#include "protocol/tiny_model_test.h"

namespace tandem::protocol {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const char* const kHello = R"({"messages":[{"role":"user","content":"hi"}]})";
const char* const kStream =
    R"({"messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}})";

chat::Event delta(std::string text, uint32_t choice = 0) {
  return {.choice = choice,
          .body = chat::Delta{
              .channel = chat::Channel::kText, .text = std::move(text), .logprobs = {}}};
}

chat::Event end(uint32_t choice = 0) {
  return {
      .choice = choice,
      .body = chat::End{.reason = chat::FinishReason::kStop,
                        .stop_text = {},
                        .usage = {.prompt_tokens = 7, .cached_tokens = 3, .completion_tokens = 2}}};
}

chat::Event failed(ErrorCode code, uint32_t choice = 0) {
  return {.choice = choice, .body = chat::Failed{.error = {code, "it broke"}, .usage = {}}};
}

std::vector<chat::Event> two_words(const chat::Request& request) {
  std::vector<chat::Event> events;
  for (uint32_t choice = 0; choice < request.choices; ++choice) {
    events.push_back(delta("Hello", choice));
  }
  for (uint32_t choice = 0; choice < request.choices; ++choice) {
    events.push_back(delta(" world", choice));
    events.push_back(end(choice));
  }
  return events;
}

class Fixture {
 public:
  explicit Fixture(chat::FakeService::Script script = {}, Options options = {}, Probe probe = {})
      : service_(kTinyModel, std::move(script)),
        api_(service_, clock_, std::move(options), std::move(probe)) {
    net::Router router;
    api_.add_routes(router);
    server_ = std::move(net::Server::start({}, std::move(router))).value();
  }

  chat::FakeService& service() { return service_; }
  Api& api() { return api_; }
  uint16_t port() const { return server_->port(); }
  net::Client client() const { return net::Client::make(server_->url()).value(); }

 private:
  SteadyClock clock_;
  chat::FakeService service_;
  Api api_;
  std::unique_ptr<net::Server> server_;
};

Json json(const net::Response& response) { return Json::parse(response.body); }

std::string post_bytes(const std::string& path, const std::string& body) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{}", path,
                     body.size(), body);
}

struct Stream {
  int status = 0;
  std::vector<std::string> data;
  std::vector<std::string> comments;
};

Stream read_stream(const net::Client& client, const std::string& path, const std::string& body) {
  Stream out;
  const auto response = client.stream(path, body, [&](const net::SseEvent& event) {
    if (event.comment.empty()) {
      out.data.push_back(event.data);
    } else {
      out.comments.push_back(event.comment);
    }
    return true;
  });
  out.status = response.value().status;
  return out;
}

TEST_CASE("api: a whole answer and a streamed one say the same") {
  Fixture fixture(two_words);
  for (const char* path :
       {"/v1/chat/completions", "/chat/completions", "/v1/chat/completions?x=1"}) {
    const auto whole = fixture.client().post(path, kHello).value();
    CHECK(whole.status == 200);
    CHECK(json(whole)["choices"][0]["message"]["content"] == "Hello world");
    CHECK(json(whole)["usage"]["prompt_tokens_details"]["cached_tokens"] == 3);
    CHECK(json(whole)["id"] == std::string(net::find_header(whole.headers, "x-request-id")));
    const Stream stream = read_stream(fixture.client(), path, kStream);
    CHECK(stream.status == 200);
    std::string text;
    for (const std::string& data : stream.data) {
      if (data == "[DONE]") continue;
      const Json chunk = Json::parse(data);
      if (chunk["choices"].empty()) {
        CHECK(chunk["usage"] == json(whole)["usage"]);
      } else {
        text += chunk["choices"][0]["delta"].value("content", "");
      }
    }
    CHECK(text == "Hello world");
    CHECK(stream.data.back() == "[DONE]");
  }
}

TEST_CASE("api: every path of /v1 exists without it too, and the others do not exist with it") {
  Fixture fixture(two_words);
  const auto ask = [&](const std::string& method, std::string path) {
    if (const size_t open = path.find("{id"); open != std::string::npos)
      path.replace(open, path.find('}') + 1 - open, "tiny");
    const auto client = fixture.client();
    if (method == "DELETE") return client.erase(path).value();
    return (method == "GET" ? client.get(path) : client.post(path, "{}")).value();
  };
  const auto is_route = [&](const char* method, const std::string& path) {
    const net::Response response = ask(method, path);
    return response.status != 405 &&
           response.body.find("there is nothing at this path") == std::string::npos;
  };
#define X(method, path, access, handler)        \
  CHECK_MESSAGE(is_route(#method, path), path); \
  CHECK_MESSAGE(!is_route(#method, "/v1" path), path);
#define V1(method, path, access, handler)       \
  CHECK_MESSAGE(is_route(#method, path), path); \
  CHECK_MESSAGE(is_route(#method, "/v1" path), path);
#include "protocol/routes.inc"
#undef X
#undef V1
}

/// Two calls, whatever is asked.
std::vector<chat::Event> two_calls(const chat::Request&) {
  std::vector<chat::Event> out;
  const auto add = [&](auto body) { out.push_back({.choice = 0, .body = std::move(body)}); };
  for (uint32_t call = 0; call < 2; ++call) {
    add(chat::CallStarted{.call = call, .id = "call_" + std::to_string(call), .name = "f"});
    add(chat::CallArguments{.call = call, .json = R"({"a":1})"});
    add(chat::CallEnded{.call = call});
  }
  add(chat::End{.reason = chat::FinishReason::kToolCalls, .stop_text = {}, .usage = {}});
  return out;
}

TEST_CASE("api: tool calls reach the client, one at a time when it wants so") {
  Fixture fixture(two_calls);
  for (const bool parallel : {true, false}) {
    const std::string fields = parallel ? "" : R"(,"parallel_tool_calls":false)";
    const std::string body = R"({"messages":[{"role":"user","content":"x"}])" + fields;
    const Json whole = json(fixture.client().post("/v1/chat/completions", body + "}").value());
    CHECK(whole["choices"][0]["finish_reason"] == "tool_calls");
    CHECK(whole["choices"][0]["message"]["tool_calls"].size() == (parallel ? 2 : 1));
    const Stream stream =
        read_stream(fixture.client(), "/v1/chat/completions", body + R"(,"stream":true})");
    size_t starts = 0;
    for (const std::string& data : stream.data) starts += data.find("\"id\":\"call_") != data.npos;
    CHECK(starts == (parallel ? 2 : 1));
  }
  CHECK(json(fixture.client().get("/v1/requests").value())["recent"][0]["finish_reason"] ==
        "tool_calls");
}

TEST_CASE("api: what has no effect is told in the answer and counted") {
  Fixture fixture(two_words);
  fixture.service().warn({{.code = "tools_not_in_template", .message = "no place for tools"}});
  const Json whole = json(fixture.client().post("/v1/chat/completions", kHello).value());
  CHECK(whole["warnings"][0]["message"] == "no place for tools");
  CHECK(fixture.client()
            .get("/metrics")
            .value()
            .body.find("tandem_warnings_total{code=\"tools_not_in_template\"} 1\n") !=
        std::string::npos);
}

struct NamedEvent {
  std::string name;
  Json data;
};

std::vector<NamedEvent> read_events(const net::Client& client, const std::string& body) {
  std::vector<NamedEvent> out;
  const auto response =
      client.stream("/v1/messages?beta=true", body, [&](const net::SseEvent& event) {
        if (event.comment.empty()) out.push_back({event.event, Json::parse(event.data)});
        return true;
      });
  CHECK(response.value().status == 200);
  return out;
}

TEST_CASE("api: the messages wire, whole and streamed") {
  Fixture fixture(two_words);
  const std::string body = R"({"max_tokens":9,"messages":[{"role":"user","content":"hi"}])";
  const auto whole = fixture.client().post("/v1/messages?beta=true", body + "}").value();
  CHECK(whole.status == 200);
  CHECK(json(whole)["content"] == Json::parse(R"([{"type":"text","text":"Hello world"}])"));
  CHECK(json(whole)["usage"]["input_tokens"] == 4);
  CHECK(json(whole)["usage"]["cache_read_input_tokens"] == 3);
  CHECK(json(whole)["id"] == std::string(net::find_header(whole.headers, "request-id")));
  const auto events = read_events(fixture.client(), body + R"(,"stream":true})");
  std::vector<std::string> names;
  for (const NamedEvent& event : events) {
    names.push_back(event.name);
    CHECK(event.data["type"] == event.name);
  }
  CHECK(names == std::vector<std::string>{"message_start", "content_block_start",
                                          "content_block_delta", "content_block_delta",
                                          "content_block_stop", "message_delta", "message_stop"});
  CHECK(events[0].data["message"]["usage"]["input_tokens"] == 7);
  CHECK(events[5].data["usage"]["cache_read_input_tokens"] == 3);
}

TEST_CASE("api: tools of the messages wire, one at a time when the client wants so") {
  Fixture fixture(two_calls);
  for (const bool parallel : {true, false}) {
    const std::string body =
        R"({"max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f"}])" +
        std::string(
            parallel ? "}" : R"(,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}})");
    const Json whole = json(fixture.client().post("/v1/messages", body).value());
    CHECK(whole["stop_reason"] == "tool_use");
    REQUIRE(whole["content"].size() == (parallel ? 2 : 1));
    CHECK(dump(whole["content"][0]) ==
          R"({"type":"tool_use","id":"call_0","name":"f","input":{"a":1}})");
  }
}

TEST_CASE("api: failures of the messages wire have its shape") {
  Fixture fixture([](const chat::Request&) {
    return std::vector{delta("Half"), failed(ErrorCode::kPeerLost)};
  });
  const std::string body = R"({"messages":[{"role":"user","content":"hi"}])";
  const auto whole = fixture.client().post("/v1/messages", body + "}").value();
  CHECK(whole.status == 529);
  CHECK(json(whole)["error"]["type"] == "overloaded_error");
  CHECK_FALSE(net::find_header(whole.headers, "retry-after").empty());
  const auto events = read_events(fixture.client(), body + R"(,"stream":true})");
  CHECK(events.back().name == "error");
  CHECK(events.back().data["error"]["message"] == "it broke");
  fixture.service().refuse(
      {ErrorCode::kTooLarge, "prompt is too long: 9 tokens > 7 maximum", "messages"});
  const auto refused = fixture.client().post("/v1/messages", body + "}").value();
  CHECK(refused.status == 400);
  CHECK(refused.body == R"({"type":"error","error":{"type":"invalid_request_error",)"
                        R"("message":"prompt is too long: 9 tokens > 7 maximum"}})");
  CHECK(fixture.client().post("/v1/messages", "{").value().body.starts_with(R"({"type":"error")"));
}

TEST_CASE("api: the responses wire, whole and streamed") {
  Fixture fixture(two_calls);
  const std::string body = R"({"input":"x","tools":[{"type":"function","name":"f"}])";
  const Json whole = json(fixture.client().post("/v1/responses", body + "}").value());
  REQUIRE(whole["output"].size() == 2);
  CHECK(whole["output"][0]["call_id"] == "call_0");
  const Stream stream = read_stream(fixture.client(), "/responses", body + R"(,"stream":true})");
  REQUIRE(stream.data.size() > 2);
  CHECK(Json::parse(stream.data.front())["type"] == "response.created");
  const Json last = Json::parse(stream.data.back());
  CHECK(last["type"] == "response.completed");
  CHECK(last["response"]["output"].size() == 2);
  const auto lost =
      fixture.client().post("/v1/responses", R"({"input":"x","previous_response_id":"resp_none"})");
  CHECK(lost.value().status == 404);
  CHECK(json(lost.value())["error"]["param"] == "previous_response_id");
}

TEST_CASE("api: tokens are counted without a generation") {
  Fixture fixture;
  const auto counted = fixture.client().post(
      "/v1/messages/count_tokens?beta=true",
      R"({"model":"org/tiny","messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f"}]})");
  CHECK(counted.value().body == R"({"input_tokens":7})");
  CHECK(json(fixture.client().get("/v1/requests").value())["recent"].empty());
  fixture.service().refuse({ErrorCode::kInvalid, "the template says no", "messages"});
  const auto refused = fixture.client().post("/v1/messages/count_tokens",
                                             R"({"messages":[{"role":"user","content":"hi"}]})");
  CHECK(refused.value().status == 400);
  CHECK(json(refused.value())["error"]["message"] == "the template says no");
}

TEST_CASE("api: the messages wire starts its message when the prompt's reuse is known") {
  Options options;
  options.keep_alive = milliseconds(20);
  Fixture fixture({}, options);
  auto answer = std::async(std::launch::async, [&] {
    return read_events(fixture.client(),
                       R"({"stream":true,"messages":[{"role":"user","content":"hi"}]})");
  });
  const std::string id = fixture.service().wait_for_submission();
  std::this_thread::sleep_for(milliseconds(60));
  fixture.service().emit(id, {.choice = 0, .body = chat::Progress{6, 7, 5}});
  fixture.service().emit(id, delta("x"));
  fixture.service().emit(id, end());
  const auto events = answer.get();
  CHECK(events.front().name == "ping");
  const auto start = std::find_if(events.begin(), events.end(), [](const NamedEvent& event) {
    return event.name == "message_start";
  });
  REQUIRE(start != events.end());
  CHECK(start->data["message"]["usage"]["cache_read_input_tokens"] == 5);
  CHECK(start->data["message"]["usage"]["input_tokens"] == 2);
}

TEST_CASE("api: models have the shape of the wire that asks") {
  Fixture fixture;
  const auto ask = [&](const std::string& path) {
    net::RawSocket socket(fixture.port());
    socket.send("GET " + path +
                " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                "anthropic-version: 2023-06-01\r\n\r\n");
    const std::string bytes = socket.read_all();
    return bytes.substr(bytes.find("\r\n\r\n") + 4);
  };
  const std::string entry =
      R"({"type":"model","id":"org/tiny","display_name":"org/tiny",)"
      R"("created_at":"1970-01-01T00:00:07Z","max_input_tokens":4096,"max_tokens":2048})";
  CHECK(ask("/v1/models?limit=1000") ==
        "{\"data\":[" + entry +
            R"(],"has_more":false,"first_id":"org/tiny","last_id":"org/tiny"})");
  CHECK(ask("/v1/models/org/tiny") == entry);
  CHECK(
      ask("/v1/models/other").starts_with(R"({"type":"error","error":{"type":"not_found_error")"));
}

TEST_CASE("api: somebody is there for clients that look first") {
  Fixture fixture;
  net::RawSocket socket(fixture.port());
  socket.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(socket.read_until("\r\n\r\n").starts_with("HTTP/1.1 200"));
}

TEST_CASE("api: choices are told apart by index, and usage counts the prompt once") {
  Fixture fixture(two_words);
  const Json whole = json(
      fixture.client()
          .post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}],"n":3})")
          .value());
  REQUIRE(whole["choices"].size() == 3);
  for (int i = 0; i < 3; ++i) {
    CHECK(whole["choices"][i]["index"] == i);
    CHECK(whole["choices"][i]["message"]["content"] == "Hello world");
  }
  CHECK(whole["usage"]["prompt_tokens"] == 7);
  CHECK(whole["usage"]["completion_tokens"] == 6);
}

TEST_CASE("api: text completions, whole and streamed, with an echo") {
  Fixture fixture(two_words);
  const Json whole =
      json(fixture.client().post("/completions", R"({"prompt":"Say: ","echo":true})").value());
  CHECK(whole["choices"][0]["text"] == "Say: Hello world");
  CHECK(whole["id"].get<std::string>().starts_with("cmpl-"));
  const Stream stream = read_stream(fixture.client(), "/v1/completions",
                                    R"({"prompt":"Say: ","echo":true,"stream":true})");
  std::string text;
  for (const std::string& data : stream.data) {
    if (data != "[DONE]") text += Json::parse(data)["choices"][0]["text"];
  }
  CHECK(text == "Say: Hello world");
}

TEST_CASE("api: refusals have the right status, shape and headers") {
  const struct {
    Error error;
    int status;
    const char* code;
    bool retry;
  } cases[] = {
      {{ErrorCode::kInvalid, "template says no", "messages"}, 400, "invalid_value", false},
      {{ErrorCode::kTooLarge, "7900 of 4096", "messages"}, 400, "context_length_exceeded", false},
      {{ErrorCode::kTooLarge, "7900 of 4096", "input[1]"}, 400, "context_length_exceeded", false},
      {{ErrorCode::kBusy, "full"}, 429, "queue_full", true},
      {{ErrorCode::kUnavailable, "none"}, 503, "unavailable", true},
      {{ErrorCode::kConflict, "twice"}, 409, "conflict", false},
      {{ErrorCode::kInternal, "oops"}, 500, "internal_error", false},
  };
  Fixture fixture;
  for (const auto& test : cases) {
    for (const char* body : {kHello, kStream}) {
      fixture.service().refuse(test.error);
      const auto response = fixture.client().post("/v1/chat/completions", body).value();
      CHECK(response.status == test.status);
      CHECK(json(response)["error"]["code"] == test.code);
      CHECK(json(response)["error"]["message"] == test.error.message);
      CHECK(net::find_header(response.headers, "retry-after").empty() == !test.retry);
    }
  }
  CHECK(fixture.api().table().running() == 0);
}

TEST_CASE("api: a failure is an error, never text of the assistant") {
  Fixture fixture([](const chat::Request&) {
    return std::vector{delta("Half"), failed(ErrorCode::kPeerLost)};
  });
  const auto whole = fixture.client().post("/v1/chat/completions", kHello).value();
  CHECK(whole.status == 503);
  CHECK(json(whole)["error"]["code"] == "instance_lost");
  const Stream stream = read_stream(fixture.client(), "/v1/chat/completions", kStream);
  CHECK(stream.status == 200);
  REQUIRE(stream.data.size() == 3);
  CHECK(Json::parse(stream.data[2])["error"]["message"] == "it broke");
  for (const std::string& data : stream.data) CHECK(data != "[DONE]");
}

TEST_CASE("api: when one choice fails the others are cancelled") {
  Fixture fixture;
  auto answer = std::async(std::launch::async, [&] {
    return fixture.client().post("/v1/chat/completions",
                                 R"({"messages":[{"role":"user","content":"x"}],"n":2})");
  });
  const std::string id = fixture.service().wait_for_submission();
  fixture.service().emit(id, failed(ErrorCode::kInternal, 1));
  CHECK(answer.get().value().status == 500);
  CHECK(fixture.service().wait_for_cancel(id, seconds(1)));
  fixture.service().emit(id, failed(ErrorCode::kCancelled, 0));
  CHECK(fixture.api().table().running() == 0);
  CHECK(fixture.api().table().find(id)->outcome == Outcome::kFailed);
}

TEST_CASE("api: a client that leaves cancels its request within a second, streamed or not") {
  for (const char* body : {kHello, kStream}) {
    Fixture fixture;
    net::RawSocket socket(fixture.port());
    socket.send(post_bytes("/v1/chat/completions", body));
    const std::string id = fixture.service().wait_for_submission();
    REQUIRE_FALSE(id.empty());
    socket.close();
    CHECK(fixture.service().wait_for_cancel(id, seconds(1)));
    fixture.service().emit(id, failed(ErrorCode::kCancelled));
    CHECK(fixture.api().table().find(id)->outcome == Outcome::kCancelled);
  }
}

TEST_CASE("api: a client that does not read its stream is cancelled and stalls nobody") {
  Fixture fixture;
  net::RawSocket socket(fixture.port(), 4096);
  socket.send(post_bytes("/v1/chat/completions", kStream));
  const std::string id = fixture.service().wait_for_submission();
  bool cancelled = false;
  for (int i = 0; i < 100'000 && !cancelled; ++i) {
    fixture.service().emit(id, delta(std::string(500, 'x')));
    cancelled = i % 1000 == 0 && fixture.service().wait_for_cancel(id, milliseconds(0));
  }
  CHECK(cancelled);
  fixture.service().emit(id, failed(ErrorCode::kCancelled));
}

TEST_CASE("api: stop ends the named request and no other") {
  Fixture fixture;
  auto first = std::async(std::launch::async, [&] {
    return fixture.client().post("/v1/chat/completions", kHello).value();
  });
  const std::string a = fixture.service().wait_for_submission(1);
  auto second = std::async(std::launch::async, [&] {
    return read_stream(fixture.client(), "/v1/chat/completions", kStream);
  });
  const std::string b = fixture.service().wait_for_submission(2);
  const auto stop = [&](const std::string& body) {
    return fixture.client().post("/v1/stop", body).value().status;
  };
  CHECK(stop("{}") == 400);
  CHECK(stop("not json") == 400);
  CHECK(stop(R"({"request_id":"chatcmpl-none"})") == 404);
  CHECK(stop(R"({"request_id":")" + a + R"(","expected_request_id":"other"})") == 409);
  CHECK(stop(R"({"request_id":")" + a + "\"}") == 200);
  CHECK(fixture.service().wait_for_cancel(a, milliseconds(0)));
  CHECK_FALSE(fixture.service().wait_for_cancel(b, milliseconds(0)));
  fixture.service().emit(a, failed(ErrorCode::kCancelled));
  CHECK(first.get().status == 499);
  CHECK(stop(R"({"request_id":")" + a + "\"}") == 409);
  fixture.service().emit(b, end());
  CHECK(second.get().data.back() == "[DONE]");
  const Json list = json(fixture.client().get("/v1/requests").value());
  CHECK(list["active"].empty());
  CHECK(list["recent"][0]["id"] == b);
  CHECK(list["recent"][1]["outcome"] == "cancelled");
  CHECK(list["recent"][1]["peer"] == "127.0.0.1");
}

TEST_CASE("api: prefill shows its progress in comments, unless they are switched off") {
  for (const int period : {20, 0}) {
    Options options;
    options.keep_alive = milliseconds(period);
    Fixture fixture({}, options);
    auto answer = std::async(std::launch::async, [&] {
      return read_stream(fixture.client(), "/v1/chat/completions", kStream);
    });
    const std::string id = fixture.service().wait_for_submission();
    fixture.service().emit(id, {.choice = 0, .body = chat::Progress{512, 2048}});
    fixture.service().emit(id, {.choice = 0, .body = chat::Progress{1024, 2048}});
    fixture.service().emit(id, delta("x"));
    fixture.service().emit(id, end());
    const Stream stream = answer.get();
    CHECK(stream.data.back() == "[DONE]");
    const bool shown = std::find(stream.comments.begin(), stream.comments.end(),
                                 "keepalive 1024/2048") != stream.comments.end();
    CHECK(shown == (period > 0));
    CHECK(stream.comments.empty() == (period == 0));
  }
}

TEST_CASE("api: models are listed with their limits, by any of their names") {
  Options options;
  options.aliases = {"tiny"};
  Fixture fixture({}, options);
  const Json list = json(fixture.client().get("/v1/models").value());
  CHECK(dump(list) == R"({"object":"list","data":[{"id":"org/tiny","object":"model","created":7,)"
                      R"("owned_by":"tandem","context_length":4096,"max_model_len":4096,)"
                      R"("native_context_length":8192,"max_output_tokens":2048}]})");
  for (const char* path : {"/v1/models/org/tiny", "/models/org%2Ftiny", "/v1/models/tiny"}) {
    CHECK(json(fixture.client().get(path).value()) == list["data"][0]);
  }
  for (const std::string& path :
       {std::string("/v1/models/other"), std::string("/v1/models/../../etc"),
        std::string("/v1/models/%00"), "/v1/models/" + std::string(10'000, 'm')}) {
    const auto response = fixture.client().get(path).value();
    CHECK((response.status == 404 || response.status == 400));
    CHECK(response.body.size() < 1000);
  }
}

TEST_CASE("api: readiness follows what is delivered and what instances say") {
  Options options;
  options.stall = milliseconds(30);
  std::atomic<bool> lost = false;
  Fixture fixture({}, options, [&]() -> std::optional<std::string> {
    if (lost) return "rank 1 is gone";
    return std::nullopt;
  });
  const auto status = [&] { return fixture.client().get("/health/ready").value().status; };
  CHECK(status() == 200);
  net::RawSocket socket(fixture.port());
  socket.send(post_bytes("/v1/chat/completions", kStream));
  const std::string id = fixture.service().wait_for_submission();
  while (status() == 200) std::this_thread::yield();
  CHECK(fixture.client().get("/health").value().status == 503);
  CHECK(fixture.client().get("/health/live").value().status == 200);
  fixture.service().emit(id, end());
  CHECK(status() == 200);
  lost = true;
  CHECK(json(fixture.client().get("/health/ready").value())["reason"] == "rank 1 is gone");
}

TEST_CASE("api: what clients send is counted") {
  Fixture fixture(two_words);
  fixture.client()
      .post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}],"frob":1})")
      .value();
  fixture.client().post("/v1/chat/completions", "{").value();
  const std::string text = fixture.client().get("/metrics").value().body;
  CHECK(text.find("tandem_ignored_fields_total{field=\"frob\"} 1\n") != std::string::npos);
  CHECK(text.find("tandem_requests_total{endpoint=\"chat\",outcome=\"finished\"} 1\n") !=
        std::string::npos);
  CHECK(text.find("tandem_requests_refused_total{endpoint=\"chat\",status=\"400\"} 1\n") !=
        std::string::npos);
}

}  // namespace
}  // namespace tandem::protocol
