// Thinking that is closed for the model: at its budget, or where it forgot to.
#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "chat/testdata/harness.h"

using namespace tandem;
using namespace tandem::chat;

namespace {

/// A model that thinks `thought` until its thinking is closed, then says `answer`. What was emitted
/// by others than itself is told apart by nothing: it draws on behind any tokens.
class Thinker {
 public:
  Thinker(std::string thought,
          std::string answer,
          const LocalServiceOptions& options = {},
          const std::string& chat_template = kChatTemplate)
      : service(harness.fake,
                fixture_model(chat_template),
                {.id = "m", .has_chat_template = true},
                options) {
    const std::string closed = options.tool_dialect == "gpt_oss" ? "<|end|>" : "</think>";
    harness.script = [this, thought, answer, closed](const gen::Request& request) {
      gen::FakeReply reply;
      reply.tokens = request.emitted;
      reply.tokens_per_event = tokens_per_event;
      const bool is_closed = text_of(request.emitted).find(closed) != std::string::npos;
      for (const gen::TokenId id : harness.encode(is_closed ? answer : thought)) {
        reply.tokens.push_back(id);
      }
      if (!hangs) reply.tokens.push_back(harness.model.eos.front());
      reply.hangs = hangs;
      return reply;
    };
  }

  std::string text_of(const std::vector<gen::TokenId>& ids) const {
    std::string text;
    for (const gen::TokenId id : ids) text += harness.model.tokenizer->bytes(id);
    return text;
  }

  static Request request(std::optional<uint32_t> budget) {
    Request asked = Harness::request();
    std::get<Conversation>(asked.input).template_arguments = {{"open_thinking", true}};
    asked.guards.thinking_budget = budget;
    return asked;
  }

  /// Submits, and waits for every choice's last event. A name is free only some time behind it.
  const Seen& run(Request asked) {
    if (runs++ > 0) asked.id += std::to_string(runs);
    const std::string id = asked.id;
    const uint32_t choices = asked.choices;
    seen.clear();
    const auto accepted = service.submit(std::move(asked), [this](const Event& event) {
      const std::lock_guard lock(mutex);
      seen[event.choice].add(event);
      if (event.is_last()) ++ended, changed.notify_all();
    });
    TANDEM_CHECK(accepted.has_value(), "{}", accepted.error().message);
    if (on_accepted) on_accepted();
    std::unique_lock lock(mutex);
    CHECK(changed.wait_for(lock, std::chrono::seconds(20), [&] { return ended == choices; }));
    ended = 0;
    return seen[0];
  }

  /// How often a generation was cancelled, which comes after the next one was submitted.
  auto cancels(gen::RequestId id) const {
    const auto count = [&] { return std::ranges::count(harness.fake.cancelled(), id); };
    for (int i = 0; i < 2000 && count() == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return count();
  }

  Harness harness{gen::Fake::Delivery::kOwnThread};
  size_t tokens_per_event = 1;
  bool hangs = false;
  std::function<void()> on_accepted;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint32_t, Seen> seen;
  uint32_t ended = 0;
  int runs = 0;
  LocalService service;
};

const std::string kThought = "one two three four five six seven eight nine ten\nand so on and on";

}  // namespace

TEST_CASE("thinking: it is closed at its budget, however many tokens a step has") {
  Thinker thinker(kThought, "The answer.");
  const size_t whole = thinker.harness.encode(kThought).size();
  for (const size_t step : {1, 2, 3, 7, 100}) {
    thinker.tokens_per_event = step;
    for (const uint32_t budget : {1U, 5U, 12U}) {
      CAPTURE(step);
      CAPTURE(budget);
      const size_t before = thinker.harness.fake.submitted().size();
      const Seen& seen = thinker.run(Thinker::request(budget));
      REQUIRE(seen.ends.size() == 1);
      CHECK(seen.text == "The answer.");
      CHECK(kThought.starts_with(seen.thinking));
      CHECK(seen.thinking.size() < kThought.size());
      CHECK(seen.ends[0].reason == FinishReason::kStop);
      CHECK(seen.ends[0].guards == std::vector{Guard::kThinkingBudget});
      CHECK(seen.ends[0].usage.reasoning_tokens == budget);
      const auto submitted = thinker.harness.fake.submitted();
      REQUIRE(submitted.size() == before + 2);
      const gen::Request& first = submitted[before];
      const gen::Request& second = submitted[before + 1];
      CHECK(second.prompt == first.prompt);
      CHECK(second.sampling == first.sampling);
      CHECK(second.max_tokens == first.max_tokens);
      CHECK(second.emitted.size() > budget);
      CHECK(thinker.text_of(second.emitted) == seen.thinking + "</think>");
      CHECK(seen.ends[0].usage.completion_tokens ==
            second.emitted.size() + thinker.harness.encode("The answer.").size() + 1);
      CHECK(thinker.cancels(first.id) == 1);
    }
  }
  CHECK(whole > 12);
}

TEST_CASE("thinking: a thought within its budget is left alone") {
  Thinker thinker("short</think>\n\nSo.", "never");
  const Seen& seen = thinker.run(Thinker::request(1000));
  CHECK(seen.thinking == "short");
  CHECK(seen.text == "\n\nSo.");
  CHECK(seen.ends.at(0).guards.empty());
  CHECK(thinker.harness.fake.submitted().size() == 1);
}

TEST_CASE("thinking: a budget of 0 closes it in the prompt") {
  Thinker thinker("The answer.", "never");
  const Seen& seen = thinker.run(Thinker::request(0));
  CHECK(seen.text == "The answer.");
  CHECK(seen.thinking.empty());
  CHECK(thinker.text_of(thinker.harness.fake.submitted().at(0).prompt).ends_with("</think>"));
  CHECK(thinker.harness.fake.submitted().size() == 1);
}

TEST_CASE("thinking: a sentence of the operator's stands before the marker, in thinking") {
  Thinker thinker(kThought, "The answer.", {.thinking_wrap_up = "Enough."});
  const Seen& seen = thinker.run(Thinker::request(4));
  CHECK(seen.thinking.ends_with("\n\nEnough."));
  CHECK(seen.text == "The answer.");
}

TEST_CASE("thinking: choices are closed each for itself, and logprobs are of drawn tokens alone") {
  Thinker thinker(kThought, "The answer.");
  Request asked = Thinker::request(6);
  asked.choices = 3;
  asked.logprobs = 0;
  thinker.run(asked);
  for (uint32_t choice = 0; choice < 3; ++choice) {
    const Seen& seen = thinker.seen[choice];
    CHECK(seen.text == "The answer.");
    CHECK(seen.ends.size() == 1);
    std::string bytes;
    for (const LogprobEntry& entry : seen.logprobs) bytes += entry.token.bytes;
    CHECK(bytes == seen.thinking + seen.text);
  }
}

TEST_CASE("thinking: where no room is left for an answer, it goes on to the limit") {
  Thinker thinker(kThought, "The answer.");
  Request asked = Thinker::request(6);
  asked.max_tokens = 7;
  const Seen& seen = thinker.run(asked);
  CHECK(seen.ends.at(0).reason == FinishReason::kLength);
  CHECK(seen.ends[0].usage.completion_tokens == 7);
  CHECK(seen.ends[0].guards.empty());
  CHECK(thinker.harness.fake.submitted().size() == 1);
}

TEST_CASE("thinking: a cancel at any time ends the answer once") {
  for (int round = 0; round < 40; ++round) {
    Thinker thinker(kThought, "The answer.");
    thinker.hangs = true;
    thinker.on_accepted = [&] {
      std::this_thread::sleep_for(std::chrono::microseconds(round * 20));
      CHECK(thinker.service.cancel("r"));
    };
    const Seen& seen = thinker.run(Thinker::request(3));
    CHECK(seen.last_events() == 1);
  }
}

TEST_CASE("thinking: a refusal of what goes on is the answer's failure") {
  Thinker thinker(kThought, "The answer.");
  const auto script = thinker.harness.script;
  thinker.harness.script = [&](const gen::Request& request) {
    gen::FakeReply reply = script(request);
    if (!request.emitted.empty()) reply.refusal = Error{ErrorCode::kUnavailable, "gone"};
    return reply;
  };
  const Seen& seen = thinker.run(Thinker::request(3));
  REQUIRE(seen.failures.size() == 1);
  CHECK(seen.failures[0].error.message == "gone");
}

TEST_CASE("thinking: a service that goes away leaves no answer without an end") {
  for (int round = 0; round < 20; ++round) {
    int ends = 0;
    {
      Harness harness;
      harness.reply.tokens = harness.encode(kThought);
      auto service = std::make_unique<LocalService>(
          harness.fake, harness.model, ModelInfo{.id = "m", .has_chat_template = true});
      REQUIRE(service->submit(Thinker::request(2), [&](const Event& event) {
        if (event.is_last()) ++ends;
      }));
      for (int i = 0; i < round; ++i) harness.fake.step();
      service.reset();
    }
    CHECK(ends == 1);
  }
}

TEST_CASE("thinking: one that the model ends without an answer is closed, when asked for") {
  Thinker thinker("I know it. ```c\nint x;\n```", "The answer.");
  Request asked = Thinker::request({});
  CHECK(thinker.run(asked).text.empty());
  asked.guards.unclosed_thought = true;
  const Seen& seen = thinker.run(asked);
  CHECK(seen.thinking == "I know it. ```c\nint x;\n```");
  CHECK(seen.text == "The answer.");
  CHECK(seen.ends.at(0).guards == std::vector{Guard::kUnclosedThought});
  const auto emitted = thinker.harness.fake.submitted().back().emitted;
  CHECK(std::ranges::count(emitted, thinker.harness.model.eos.front()) == 0);
  CHECK(seen.ends[0].usage.completion_tokens ==
        emitted.size() + thinker.harness.encode("The answer.").size() + 1);
}

TEST_CASE("thinking: a model that always begins anew is let be in the end") {
  Thinker thinker(kThought, "<think>" + kThought);
  const Seen& seen = thinker.run(Thinker::request(2));
  CHECK(seen.ends.size() == 1);
  CHECK(thinker.harness.fake.submitted().size() == 9);
}

TEST_CASE("thinking: in Harmony the model chooses what follows, text or a call") {
  const Json tools = Json::parse(R"([{"type": "function", "function": {"name": "put"}}])");
  for (const size_t step : {1, 2, 3, 7, 100}) {
    for (const bool is_call : {false, true}) {
      CAPTURE(step);
      CAPTURE(is_call);
      Thinker thinker("<|channel|>analysis<|message|>" + kThought,
                      is_call ? " to=functions.put<|channel|>commentary json<|message|>{\"n\": 1}"
                              : "<|channel|>final<|message|>The answer, which is long.",
                      {.tool_dialect = "gpt_oss"});
      thinker.tokens_per_event = step;
      Request asked = Thinker::request(5);
      std::get<Conversation>(asked.input).template_arguments = Json::object();
      std::get<Conversation>(asked.input).tools = tools;
      const Seen& seen = thinker.run(asked);
      REQUIRE(seen.ends.size() == 1);
      CHECK(thinker.harness.fake.submitted().size() == 2);
      CHECK(thinker.text_of(thinker.harness.fake.submitted().back().emitted)
                .ends_with("<|end|><|start|>assistant"));
      CHECK(kThought.starts_with(seen.thinking));
      CHECK(seen.thinking.size() < kThought.size());
      CHECK(seen.text == (is_call ? "" : "The answer, which is long."));
      CHECK(seen.ends[0].reason == (is_call ? FinishReason::kToolCalls : FinishReason::kStop));
      CHECK(seen.ends[0].guards == std::vector{Guard::kThinkingBudget});
    }
  }
}

TEST_CASE("thinking: behind what was closed a choice is that choice alone") {
  for (const size_t step : {1, 3, 100}) {
    Thinker thinker(
        kThought, "yes", {},
        "{% for m in messages %}{{ m.content }}{% endfor %}<think>\n{# \n</think>\n\n #}");
    thinker.tokens_per_event = step;
    Request asked = Thinker::request(4);
    asked.form = {.kind = AnswerForm::Kind::kChoice, .choices = {"yes", "no"}, .field = "f"};
    const Seen& seen = thinker.run(asked);
    CHECK(thinker.text_of(thinker.harness.fake.submitted().back().emitted)
              .ends_with("\n</think>\n\n"));
    CHECK(seen.text == "yes");
    asked.form = {};
    CHECK(thinker.run(asked).text == "\n\nyes");
  }
}

TEST_CASE("thinking: what a form's text says of thinking is no thinking, and no guard's business") {
  for (const char* text : {"a <think> b", "<think>b"}) {
    CAPTURE(text);
    Thinker thinker(text, "never");
    Request asked = Thinker::request({});
    std::get<Conversation>(asked.input).template_arguments = {{"enable_thinking", text[0] == 'a'}};
    asked.form = {.kind = AnswerForm::Kind::kRegex, .source = "[a-z<> ]+", .field = "f"};
    asked.guards.unclosed_thought = true;
    asked.guards.thinking_budget = 1;
    const Seen& seen = thinker.run(asked);
    CHECK(seen.text == text);
    CHECK(seen.thinking.empty());
    CHECK(seen.ends.at(0).guards.empty());
    CHECK(thinker.harness.fake.submitted().size() == 1);
  }
}

TEST_CASE("thinking: an answer of a form ends only where it is whole, in no thought") {
  Thinker thinker("<think>b", "never");
  Request asked = Thinker::request({});
  std::get<Conversation>(asked.input).template_arguments = Json::object();
  asked.form = {.kind = AnswerForm::Kind::kRegex, .source = "[a-z<> ]+", .field = "f"};
  asked.guards.unclosed_thought = true;
  CHECK(thinker.run(asked).ends.at(0).guards.empty());
  CHECK(thinker.harness.fake.submitted().size() == 1);
}
