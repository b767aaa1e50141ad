#include "protocol/anthropic/messages_encoder.h"

#include <doctest/doctest.h>

#include "net/sse.h"
#include "protocol/encoder_stream_test.h"
#include "protocol/json.h"

namespace tandem::protocol::anthropic {
namespace {

using std::chrono::seconds;

const chat::Usage kUsage{
    .prompt_tokens = 10, .cached_tokens = 4, .completion_tokens = 3, .reasoning_tokens = 1};

AnswerHead head() {
  AnswerHead head{.id = "msg_1", .model = "m", .fingerprint = "f", .created = 5};
  head.turn_handle = "handle";
  return head;
}

std::unique_ptr<AnswerEncoder> make() {
  auto encoder = make_messages_encoder(head());
  encoder->accepted(10);
  return encoder;
}

chat::Event event(decltype(chat::Event::body) body) {
  return {.choice = 0, .body = std::move(body)};
}

chat::Event text(std::string value) {
  return event(
      chat::Delta{.channel = chat::Channel::kText, .text = std::move(value), .logprobs = {}});
}

chat::Event thinking(std::string value) {
  return event(
      chat::Delta{.channel = chat::Channel::kThinking, .text = std::move(value), .logprobs = {}});
}

chat::Event end(chat::FinishReason reason, std::string stop = {}) {
  return event(chat::End{.reason = reason, .stop_text = std::move(stop), .usage = kUsage});
}

std::string stream(AnswerEncoder& encoder, const std::vector<chat::Event>& events) {
  return streamed(encoder, events, kUsage);
}

std::vector<Json> events_of(const std::string& bytes) {
  net::SseParser parser;
  std::vector<Json> out;
  for (const net::SseEvent& one : parser.feed(bytes)) {
    out.push_back(Json::parse(one.data));
    CHECK(out.back()["type"] == one.event);
  }
  return out;
}

/// Puts a stream together as the official client does, and checks the order of its events.
class Reader {
 public:
  Json read(const std::string& bytes) {
    for (const Json& one : events_of(bytes)) take(one);
    CHECK(stopped_);
    return message_;
  }

 private:
  void take(const Json& one) {
    const std::string type = one["type"];
    CHECK_FALSE(stopped_);
    if (type == "ping") return;
    CHECK(message_.is_null() == (type == "message_start"));
    if (type == "message_start") {
      message_ = one["message"];
    } else if (type == "content_block_start") {
      CHECK_FALSE(open_);
      open_ = true;
      CHECK(one["index"] == message_["content"].size());
      message_["content"].push_back(one["content_block"]);
      input_.clear();
    } else if (type == "content_block_delta") {
      CHECK(open_);
      CHECK(one["index"] == message_["content"].size() - 1);
      add(one["delta"]);
    } else if (type == "content_block_stop") {
      CHECK(open_);
      open_ = false;
      if (!input_.empty()) message_["content"].back()["input"] = Json::parse(input_);
    } else if (type == "message_delta") {
      CHECK_FALSE(open_);
      for (const auto& [name, value] : one["delta"].items()) message_[name] = value;
      message_["usage"] = one["usage"];
    } else {
      CHECK(type == "message_stop");
      stopped_ = true;
    }
  }

  void add(const Json& delta) {
    Json& block = message_["content"].back();
    const std::string type = delta["type"];
    if (type == "input_json_delta") input_ += delta["partial_json"].get<std::string>();
    if (type == "signature_delta") block["signature"] = delta["signature"];
    for (const char* name : {"text", "thinking"}) {
      if (type != std::string(name) + "_delta") continue;
      CHECK(block["type"] == name);
      block[name] = block[name].get<std::string>() + delta[name].get<std::string>();
    }
  }

  Json message_;
  std::string input_;
  bool open_ = false;
  bool stopped_ = false;
};

/// Pieces of a text, cut once.
void add_cut(std::vector<chat::Event>& out, const std::string& whole, size_t cut, auto make_event) {
  out.push_back(make_event(whole.substr(0, cut)));
  if (cut < whole.size()) out.push_back(make_event(whole.substr(cut)));
}

std::vector<chat::Event> turn(size_t cut) {
  const std::string arguments = R"({"path": "a \"b\"", "n": 12345678901234567890123})";
  std::vector<chat::Event> out;
  add_cut(out, "I \"think\"\n", cut, thinking);
  add_cut(out, "\n\n Let me look. ", cut, text);
  for (uint32_t call = 0; call < 2; ++call) {
    out.push_back(event(chat::CallStarted{
        .call = call, .id = "toolu_" + std::to_string(call), .name = "Read \"it\""}));
    if (call == 0) {
      add_cut(out, arguments, cut, [](std::string piece) {
        return event(chat::CallArguments{.call = 0, .json = std::move(piece)});
      });
    }
    out.push_back(event(chat::CallEnded{.call = call}));
    add_cut(out, "\n\n", cut, text);
  }
  out.push_back(end(chat::FinishReason::kToolCalls));
  return out;
}

TEST_CASE("messages encoder: the stream is the same message in any cut, and the whole one") {
  for (size_t cut = 0; cut < 60; ++cut) {
    CAPTURE(cut);
    Answer answer;
    const auto events = turn(cut);
    for (const chat::Event& one : events) answer.add(one);
    const auto encoder = make();
    const Json whole = Json::parse(encoder->whole({answer}, kUsage));
    CHECK(Reader().read(stream(*encoder, events)) == whole);
    REQUIRE(whole["content"].size() == 4);
    CHECK(whole["content"][0]["thinking"] == "I \"think\"\n");
    CHECK(whole["content"][1]["text"] == "\n\n Let me look. ");
    CHECK(whole["content"][2]["name"] == "Read \"it\"");
    CHECK(whole["content"][3]["input"] == Json::object());
    CHECK(whole["stop_reason"] == "tool_use");
  }
}

TEST_CASE("messages encoder: the events of a turn, byte for byte") {
  const auto encoder = make();
  const std::string bytes = stream(*encoder, {thinking("hm"), text("Hi"), end({})});
  const std::string signature = "handle";
  CHECK(bytes ==
        "event: message_start\n"
        R"(data: {"type":"message_start","message":{"id":"msg_1","type":"message",)"
        R"("role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,)"
        R"("usage":{"input_tokens":10,"cache_creation_input_tokens":0,)"
        R"("cache_read_input_tokens":0,"output_tokens":0,)"
        R"("output_tokens_details":{"thinking_tokens":0}}}})"
        "\n\nevent: content_block_start\n"
        R"(data: {"type":"content_block_start","index":0,)"
        R"("content_block":{"type":"thinking","thinking":"","signature":""}})"
        "\n\nevent: content_block_delta\n"
        R"(data: {"type":"content_block_delta","index":0,)"
        R"("delta":{"type":"thinking_delta","thinking":"hm"}})"
        "\n\nevent: content_block_delta\n"
        R"(data: {"type":"content_block_delta","index":0,)"
        R"("delta":{"type":"signature_delta","signature":")" +
            signature +
            "\"}}\n\nevent: content_block_stop\n"
            R"(data: {"type":"content_block_stop","index":0})"
            "\n\nevent: content_block_start\n"
            R"(data: {"type":"content_block_start","index":1,)"
            R"("content_block":{"type":"text","text":""}})"
            "\n\nevent: content_block_delta\n"
            R"(data: {"type":"content_block_delta","index":1,)"
            R"("delta":{"type":"text_delta","text":"Hi"}})"
            "\n\nevent: content_block_stop\n"
            R"(data: {"type":"content_block_stop","index":1})"
            "\n\nevent: message_delta\n"
            R"(data: {"type":"message_delta",)"
            R"("delta":{"stop_reason":"end_turn","stop_sequence":null},)"
            R"("usage":{"input_tokens":6,"cache_creation_input_tokens":0,)"
            R"("cache_read_input_tokens":4,"output_tokens":3,)"
            R"("output_tokens_details":{"thinking_tokens":1}}})"
            "\n\nevent: message_stop\n"
            R"(data: {"type":"message_stop"})"
            "\n\n");
}

TEST_CASE("messages encoder: why an answer stopped") {
  const auto reason = [](chat::FinishReason why, const std::string& stop) {
    const Json message = Reader().read(stream(*make(), {text("x"), end(why, stop)}));
    return message["stop_reason"].get<std::string>() + ":" + dump(message["stop_sequence"]);
  };
  CHECK(reason(chat::FinishReason::kStop, "") == "end_turn:null");
  CHECK(reason(chat::FinishReason::kStop, "</s>") == "stop_sequence:\"</s>\"");
  CHECK(reason(chat::FinishReason::kLength, "") == "max_tokens:null");
  CHECK(reason(chat::FinishReason::kToolCalls, "") == "tool_use:null");
}

TEST_CASE("messages encoder: an answer of nothing, or of white space, has no block") {
  for (const char* blank : {"", "\n\n"}) {
    const auto encoder = make();
    Answer answer;
    answer.add(text(blank));
    answer.add(end({}));
    const Json whole = Json::parse(encoder->whole({answer}, kUsage));
    CHECK(whole["content"] == Json::array());
    CHECK(Reader().read(stream(*encoder, {text(blank), end({})})) == whole);
  }
}

TEST_CASE("messages encoder: a call's block stops before the answer ends") {
  const auto encoder = make();
  const auto events =
      events_of(stream(*encoder, {event(chat::CallStarted{.call = 0, .id = "a", .name = "f"}),
                                  event(chat::CallArguments{.call = 0, .json = "{}"}),
                                  event(chat::CallEnded{.call = 0})}));
  REQUIRE(events.size() == 4);
  CHECK(events[1]["content_block"] ==
        Json::parse(R"({"type":"tool_use","id":"a","name":"f","input":{}})"));
  CHECK(events[3]["type"] == "content_block_stop");
}

TEST_CASE("messages encoder: who waits sees pings, and parts of an answer before it gives up") {
  const auto encoder = make();
  const chat::Progress progress{.done = 5, .total = 10, .cached = 4};
  const auto types = [&](const chat::Progress* known, seconds silence) {
    std::string out;
    for (const Json& one : events_of(encoder->waiting(known, silence))) {
      out += one["type"].get<std::string>() + " ";
    }
    return out;
  };
  CHECK(types(nullptr, seconds(10)) == "ping ");
  const auto start = events_of(encoder->waiting(&progress, seconds(20)));
  REQUIRE(start.size() == 2);
  CHECK(start[0]["message"]["usage"]["input_tokens"] == 6);
  CHECK(start[0]["message"]["usage"]["cache_read_input_tokens"] == 4);
  CHECK(start[1]["type"] == "ping");
  CHECK(types(&progress, seconds(110)) == "ping ");
  CHECK(types(&progress, kPatience) == "content_block_start content_block_delta ");
  CHECK(types(&progress, seconds(300)) == "content_block_delta ");
  std::string rest = stream(*encoder, {text(" \n"), text("x")});
  CHECK(events_of(encoder->waiting(nullptr, seconds(300)))[0]["delta"]["text"] == "");
  rest += stream(*encoder, {thinking("t")});
  CHECK(events_of(encoder->waiting(nullptr, seconds(300)))[0]["delta"]["thinking"] == "");
  rest += stream(*encoder, {event(chat::CallStarted{.call = 0, .id = "a", .name = "f"})});
  CHECK(events_of(encoder->waiting(nullptr, seconds(300)))[0]["delta"]["partial_json"] == "");
  rest += stream(*encoder, {event(chat::CallEnded{.call = 0})});
  CHECK(types(nullptr, seconds(20)) == "ping ");
  CHECK(types(nullptr, seconds(300)) == "content_block_start content_block_delta ");
  rest += stream(*encoder, {end({})});
  CHECK(events_of(rest).back()["type"] == "message_stop");
}

TEST_CASE("messages encoder: an error is an event of its own") {
  const std::string bytes = make()->failed({ErrorCode::kPeerLost, "lost"});
  CHECK(bytes ==
        "event: error\n"
        R"(data: {"type":"error","error":{"type":"overloaded_error","message":"lost"}})"
        "\n\n");
}

TEST_CASE("messages encoder: warnings are in the message") {
  AnswerHead warned = head();
  warned.warnings = {{.code = "c", .message = "m"}};
  const auto encoder = make_messages_encoder(warned);
  const std::string expected = R"([{"code":"c","message":"m"}])";
  CHECK(dump(Json::parse(encoder->whole({Answer{}}, kUsage))["warnings"]) == expected);
  CHECK(dump(events_of(stream(*encoder, {text("x")}))[0]["message"]["warnings"]) == expected);
}

TEST_CASE("messages encoder: the guards that acted are told beside the stop reason") {
  const chat::End guarded{
      .stop_text = {}, .usage = kUsage, .guards = {chat::Guard::kThinkingBudget}};
  const std::string bytes = stream(*make(), {text("Hi"), event(guarded)});
  CHECK(bytes.find(R"("delta":{"stop_reason":"end_turn","stop_sequence":null,)"
                   R"("finish_detail":["thinking_budget"]})") != std::string::npos);
  Answer answer;
  answer.add(event(guarded));
  const Json whole = Json::parse(make()->whole({answer}, kUsage));
  CHECK(whole["finish_detail"] == Json::array({"thinking_budget"}));
}

}  // namespace
}  // namespace tandem::protocol::anthropic
