#include "protocol/openai/responses_encoder.h"

#include <doctest/doctest.h>

#include "net/sse.h"
#include "protocol/encoder_stream_test.h"
#include "protocol/openai/responses_request.h"

namespace tandem::protocol::openai {
namespace {

const chat::Usage kTurnUsage{
    .prompt_tokens = 10, .cached_tokens = 4, .completion_tokens = 3, .reasoning_tokens = 1};

std::unique_ptr<AnswerEncoder> make_encoder() {
  const ToolNames names{{"apply_patch", {.name = "apply_patch", .name_space = {}, .custom = true}},
                        {"goals__get", {.name = "get", .name_space = "goals", .custom = false}}};
  return make_responses_encoder(
      {.id = "resp_7", .model = "m", .fingerprint = "f", .created = 5},
      make_notes(Json{{"parallel_tool_calls", true}, {"tool_choice", "auto"}}, names));
}

chat::Event turn_event(decltype(chat::Event::body) body) {
  return {.choice = 0, .body = std::move(body)};
}

chat::Event turn_delta(chat::Channel channel, std::string value) {
  return turn_event(chat::Delta{.channel = channel, .text = std::move(value), .logprobs = {}});
}

std::vector<chat::Event> agent_turn(size_t cut, chat::FinishReason reason) {
  std::vector<chat::Event> out;
  const auto add = [&](const std::string& whole, auto make) {
    out.push_back(make(whole.substr(0, cut)));
    if (cut < whole.size()) out.push_back(make(whole.substr(cut)));
  };
  add("I \"think\"", [](auto text) { return turn_delta(chat::Channel::kThinking, text); });
  add("\n\nLet me look.", [](auto text) { return turn_delta(chat::Channel::kText, text); });
  const std::pair<const char*, const char*> calls[] = {
      {"exec", R"({ "cmd": "ls \"a\"" })"},
      {"apply_patch", R"({"input":"*** Begin\n+x"})"},
      {"goals__get", ""}};
  uint32_t index = 0;
  for (const auto& [name, arguments] : calls) {
    const uint32_t call = index++;
    out.push_back(turn_event(
        chat::CallStarted{.call = call, .id = "call_" + std::to_string(call), .name = name}));
    add(arguments,
        [&](auto json) { return turn_event(chat::CallArguments{.call = call, .json = json}); });
    out.push_back(turn_event(chat::CallEnded{.call = call}));
    out.push_back(turn_delta(chat::Channel::kText, "\n"));
  }
  out.push_back(turn_event(chat::End{.reason = reason, .stop_text = {}, .usage = kTurnUsage}));
  return out;
}

std::string whole_stream(AnswerEncoder& encoder, const std::vector<chat::Event>& events) {
  const std::string start = encoder.accepted(10);
  return start + streamed(encoder, events, kTurnUsage);
}

std::vector<Json> numbered_events(const std::string& bytes) {
  net::SseParser parser;
  std::vector<Json> out;
  for (const net::SseEvent& one : parser.feed(bytes)) {
    out.push_back(Json::parse(one.data));
    CHECK(out.back()["type"] == one.event);
    CHECK(out.back()["sequence_number"] == out.size() - 1);
  }
  return out;
}

/// Puts the deltas of items together and compares them with what their ends say.
Json items_of(const std::vector<Json>& events) {
  Json items = Json::array();
  std::string pieces;
  std::string item_id;
  for (const Json& one : events) {
    const std::string type = one["type"];
    if (one.contains("output_index")) CHECK(one["output_index"] == items.size());
    if (one.contains("item_id")) CHECK(one["item_id"] == item_id);
    if (type == "response.output_item.added") {
      item_id = one["item"]["id"];
      CHECK(one["item"]["status"] == "in_progress");
      pieces.clear();
    } else if (one.contains("delta")) {
      pieces += one["delta"].get<std::string>();
    } else if (type == "response.output_item.done") {
      const Json& item = one["item"];
      CHECK(item["id"] == item_id);
      std::string whole;
      for (const char* name : {"arguments", "input"}) whole += item.value(name, "");
      if (item.contains("content")) whole = item["content"][0]["text"];
      CHECK((pieces == whole || (pieces.empty() && whole == "{}")));
      items.push_back(item);
    }
  }
  return items;
}

TEST_CASE("responses encoder: reasoning has the answer's handle where it is asked for") {
  for (const bool asked : {false, true}) {
    AnswerHead head{.id = "resp_7", .model = "m", .fingerprint = "f", .created = 5};
    head.turn_handle = "handle";
    Json notes = make_notes(Json::object(), {});
    notes["encrypted"] = asked;
    const auto events = numbered_events(whole_stream(*make_responses_encoder(head, notes),
                                                     agent_turn(3, chat::FinishReason::kStop)));
    const Json items = items_of(events);
    REQUIRE(items[0]["type"] == "reasoning");
    CHECK(items[0]["encrypted_content"] == (asked ? Json("handle") : Json(nullptr)));
  }
}

TEST_CASE("responses encoder: items are the same streamed in any cut and whole") {
  for (size_t cut = 0; cut < 40; ++cut) {
    CAPTURE(cut);
    const auto turn = agent_turn(cut, chat::FinishReason::kToolCalls);
    const auto events = numbered_events(whole_stream(*make_encoder(), turn));
    Answer answer;
    for (const chat::Event& one : turn) answer.add(one);
    const Json whole = Json::parse(make_encoder()->whole({answer}, kTurnUsage));
    CHECK(events.front()["type"] == "response.created");
    CHECK(events.back()["type"] == "response.completed");
    CHECK(events.back()["response"] == whole);
    CHECK(items_of(events) == whole["output"]);
    CHECK(whole["status"] == "completed");
    CHECK(whole["usage"]["total_tokens"] == 13);
    REQUIRE(whole["output"].size() == 5);
    CHECK(whole["output"][1]["content"][0]["text"] == "\n\nLet me look.");
    CHECK(whole["output"][2]["arguments"] == R"({ "cmd": "ls \"a\"" })");
    CHECK(whole["output"][3]["type"] == "custom_tool_call");
    CHECK(whole["output"][3]["input"] == "*** Begin\n+x");
    CHECK(whole["output"][4]["name"] == "get");
    CHECK(whole["output"][4]["namespace"] == "goals");
    CHECK(whole["output"][4]["arguments"] == "{}");
  }
}

TEST_CASE("responses encoder: the order of a message's events") {
  std::vector<std::string> types;
  for (const Json& one : numbered_events(whole_stream(
           *make_encoder(), {turn_delta(chat::Channel::kText, "Hi"), turn_event(chat::End{})}))) {
    types.push_back(one["type"].get<std::string>().substr(9));
  }
  CHECK(types == std::vector<std::string>{"created", "in_progress", "output_item.added",
                                          "content_part.added", "output_text.delta",
                                          "output_text.done", "content_part.done",
                                          "output_item.done", "completed"});
}

TEST_CASE("responses encoder: a cut answer is incomplete") {
  const auto events =
      numbered_events(whole_stream(*make_encoder(), agent_turn(3, chat::FinishReason::kLength)));
  CHECK(events.back()["type"] == "response.incomplete");
  CHECK(events.back()["response"]["incomplete_details"]["reason"] == "max_output_tokens");
}

TEST_CASE("responses encoder: a call that was cut off is incomplete, streamed and whole") {
  std::vector<chat::Event> turn = agent_turn(3, chat::FinishReason::kLength);
  turn.erase(turn.end() - 2);  // the white space behind the last call
  std::get<chat::CallEnded>(turn[turn.size() - 2].body).is_complete = false;
  std::get<chat::End>(turn.back().body).cut_in_call = true;
  const auto events = numbered_events(whole_stream(*make_encoder(), turn));
  Answer answer;
  for (const chat::Event& one : turn) answer.add(one);
  const Json whole = Json::parse(make_encoder()->whole({answer}, kTurnUsage));
  CHECK(events.back()["response"] == whole);
  CHECK(items_of(events) == whole["output"]);
  CHECK(whole["status"] == "incomplete");
  CHECK(whole["finish_detail"] == Json::array({"cut_off_call"}));
  CHECK(whole["output"][3]["status"] == "completed");
  CHECK(whole["output"][4]["status"] == "incomplete");
}

TEST_CASE("responses encoder: waiting is an event, and a failure the last one") {
  const auto encoder = make_encoder();
  encoder->accepted(1);
  net::SseParser parser;
  const auto waiting = parser.feed(encoder->waiting(nullptr, std::chrono::seconds(9)));
  CHECK(waiting.at(0).event == "response.in_progress");
  const auto failed = parser.feed(encoder->failed({ErrorCode::kPeerLost, "lost"}));
  CHECK(failed.at(0).event == "response.failed");
  const Json response = Json::parse(failed[0].data)["response"];
  CHECK(response["status"] == "failed");
  CHECK(response["error"] == Json::parse(R"({"code":"server_error","message":"lost"})"));
}

}  // namespace
}  // namespace tandem::protocol::openai
