// Tool calls as a client of the service sees them.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "chat/model_dialect.h"
#include "chat/testdata/harness.h"

using namespace tandem;
using namespace tandem::chat;

namespace {

struct Call {
  std::string id;
  std::string name;
  std::string arguments;
  bool ended = false;

  bool operator==(const Call&) const = default;
};

const std::string kCall =
    "<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"path\": \"a b\", \"n\": 3}}\n</tool_call>";

Request with_tools() {
  Request asked = Harness::request();
  std::get<Conversation>(asked.input).tools = Json::parse(
      R"([{"type": "function", "function": {"name": "ls", "parameters": {"type": "object",
           "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}}}}])");
  return asked;
}

std::vector<Call> calls_of(const Seen& seen) {
  std::vector<Call> calls;
  for (const Event& event : seen.events) {
    if (const auto* started = std::get_if<CallStarted>(&event.body)) {
      CHECK(started->call == calls.size());
      calls.push_back({.id = started->id, .name = started->name, .arguments = {}});
    } else if (const auto* part = std::get_if<CallArguments>(&event.body)) {
      calls.at(part->call).arguments += part->json;
    } else if (const auto* over = std::get_if<CallEnded>(&event.body)) {
      calls.at(over->call).ended = true;
    }
  }
  return calls;
}

}  // namespace

TEST_CASE("calls: arguments come as one JSON object, however many tokens an event has") {
  Harness harness;
  harness.answer("<think>hm</think>\n\nI look.\n" + kCall + "\n" + kCall);
  for (size_t size = 1; size <= 9; ++size) {
    harness.reply.tokens_per_event = size;
    const Seen& seen = harness.run(with_tools());
    const auto calls = calls_of(seen);
    REQUIRE(calls.size() == 2);
    for (const Call& call : calls) {
      CHECK(call.name == "ls");
      CHECK(call.ended);
      CHECK(Json::parse(call.arguments) == Json::parse(R"({"path": "a b", "n": 3})"));
      CHECK(call.id.starts_with("call_"));
      CHECK(call.id.size() == 25);
    }
    CHECK(calls[0].id != calls[1].id);
    CHECK(seen.thinking == "hm");
    CHECK(seen.text == "\n\nI look.\n");
    REQUIRE(seen.ends.size() == 1);
    CHECK(seen.ends[0].reason == FinishReason::kToolCalls);
    CHECK(seen.ends[0].broken_calls == 0);
  }
}

TEST_CASE("calls: what a model says behind its calls is not waited for") {
  Harness harness;
  harness.answer("<think>hm</think>" + kCall + "\n" + kCall + "\nI wait, and go on. And on.");
  const Seen whole = harness.run(with_tools());
  for (size_t size = 1; size <= 9; ++size) {
    harness.reply.tokens_per_event = size;
    const Seen& seen = harness.run(with_tools());
    CHECK(calls_of(seen).size() == 2);
    CHECK(seen.text.empty());
    REQUIRE(seen.ends.size() == 1);
    CHECK(seen.ends[0].reason == FinishReason::kToolCalls);
    CHECK(seen.ends[0].stop_text.empty());
    CHECK(seen.ends[0].usage.completion_tokens == whole.ends[0].usage.completion_tokens);
    CHECK(seen.ends[0].usage.reasoning_tokens == harness.encode("hm").size());
  }
  // The token that showed that no call follows was the last one.
  const size_t drawn = whole.ends[0].usage.completion_tokens;
  CHECK(drawn > harness.encode("<think>hm</think>" + kCall + "\n" + kCall).size());
  CHECK(drawn < harness.reply.tokens.size() - 10);
  CHECK(harness.fake.cancelled().size() == 10);
}

TEST_CASE("calls: where one is wanted at a time, the first whole one ends the answer") {
  Harness harness;
  harness.answer(kCall + "\n" + kCall);
  Request asked = with_tools();
  std::get<Conversation>(asked.input).parallel_calls = false;
  const Seen& seen = harness.run(asked);
  REQUIRE(calls_of(seen).size() == 1);
  CHECK(Json::parse(calls_of(seen)[0].arguments) == Json::parse(R"({"path": "a b", "n": 3})"));
  CHECK(seen.ends.at(0).reason == FinishReason::kToolCalls);
  CHECK(seen.ends[0].usage.completion_tokens < harness.encode(kCall).size());
}

TEST_CASE("calls: an answer that may not end goes on behind them") {
  Harness harness;
  harness.answer(kCall + "\nmore");
  Request asked = with_tools();
  asked.ignore_eos = true;
  CHECK(harness.run(asked).text == "\nmore");
}

TEST_CASE("calls: one that the limit cuts off is closed, and the finish stays length") {
  Harness harness;
  harness.answer(kCall);
  Request asked = with_tools();
  for (uint32_t limit = 1; limit < harness.reply.tokens.size() - 1; ++limit) {
    asked.max_tokens = limit;
    const Seen& seen = harness.run(asked);
    CAPTURE(limit);
    CHECK(seen.ends.at(0).reason == FinishReason::kLength);
    CHECK(seen.text.find("<tool_call>") == std::string::npos);
    for (const Call& call : calls_of(seen)) {
      CHECK(call.ended);
      CHECK(Json::parse(call.arguments, nullptr, false).is_object());
    }
  }
}

TEST_CASE("calls: a stop string ends the answer inside a call too") {
  Harness harness;
  harness.answer(kCall);
  Request asked = with_tools();
  asked.stop = {"a b"};
  const Seen& seen = harness.run(asked);
  const auto calls = calls_of(seen);
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].ended);
  CHECK(Json::parse(calls[0].arguments)["path"] == "");
  CHECK(seen.ends.at(0).reason == FinishReason::kStop);
  CHECK(seen.ends[0].stop_text == "a b");
}

TEST_CASE("calls: without tools, and in completions, their markup is text") {
  Harness harness;
  harness.answer("see " + kCall);
  CHECK(harness.run().text == "see " + kCall);
  Request raw = Harness::request();
  raw.input = RawPrompt{.prompt = "x"};
  CHECK(harness.run(raw).text == "see " + kCall);
}

TEST_CASE("calls: what cannot be a call is text, and counted") {
  Harness harness;
  harness.answer("<tool_call>{\"name\": 7}</tool_call>");
  const Seen& seen = harness.run(with_tools());
  CHECK(seen.text == "<tool_call>{\"name\": 7}</tool_call>");
  CHECK(seen.ends.at(0).reason == FinishReason::kStop);
  CHECK(seen.ends[0].broken_calls == 1);
}

TEST_CASE("calls: logprobs cover text and thinking, not calls") {
  Harness harness;
  harness.answer("Hi " + kCall);
  Request asked = with_tools();
  asked.logprobs = 0;
  const Seen& seen = harness.run(asked);
  std::string bytes;
  for (const LogprobEntry& entry : seen.logprobs) bytes += entry.token.bytes;
  CHECK(bytes == "Hi ");
}

TEST_CASE("calls: a template that knows no tools is told of them in the system message") {
  Harness harness;
  Request asked = with_tools();
  auto& conversation = std::get<Conversation>(asked.input);
  conversation.messages = Json::parse(R"([{"role": "system", "content": "be brief"},
    {"role": "user", "content": "list"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "x", "type": "function",
      "function": {"name": "ls", "arguments": "{\"path\": \".\"}"}}]},
    {"role": "tool", "tool_call_id": "x", "content": "a.txt"}])");
  harness.answer("ok");
  harness.run(asked);
  const auto submitted = harness.fake.submitted();
  std::string prompt;
  for (const gen::TokenId id : submitted.back().prompt) {
    prompt += harness.model.tokenizer->bytes(id);
  }
  CHECK(prompt.find("be brief\n\nYou have tools.") != std::string::npos);
  CHECK(prompt.find("\"name\":\"ls\"") != std::string::npos);
  CHECK(prompt.find(
            "<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"path\": \".\"}}\n</tool_call>") !=
        std::string::npos);
  CHECK(prompt.find("user\n<tool_response>\na.txt\n</tool_response>") != std::string::npos);
}

TEST_CASE("calls: a dialect is recognised, or named") {
  const text::ModelText model = fixture_model();
  CHECK(dialect_of(model, "").name == "generic");
  CHECK(dialect_of(model, "kimi_k2").name == "kimi_k2");
  text::ModelText named = model;
  named.tool_parser = "qwen3_coder";
  CHECK(dialect_of(named, "").name == "qwen3_coder");
}
