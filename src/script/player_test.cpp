// A script through the service that clients talk to.
#include "script/player.h"

#include <doctest/doctest.h>

#include <future>

#include "chat/local_service.h"
#include "chat/model_dialect.h"
#include "text/testdata/fixtures.h"

using namespace tandem;
using namespace tandem::script;

namespace {

constexpr const char* kTemplate =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{# tools #}<|im_start|>assistant\n{% if open_thinking %}<think>\n{% endif %}";

text::ModelText model_text() {
  auto model = text::load_model_text(
      text::TokenizerFiles{.tokenizer_json = text::read_testdata("byte_level.json"),
                           .tokenizer_config = R"J({"eos_token": "<|im_end|>"})J",
                           .chat_template_jinja = kTemplate},
      nlohmann::json::object());
  REQUIRE(model);
  return std::move(*model);
}

/// What a client sees of an answer.
struct Heard {
  std::string text;
  std::string thinking;
  std::vector<std::string> calls;  // names, each with its arguments
  std::optional<chat::End> end;
  std::optional<Error> failure;
  size_t pieces = 0;
};

class Stage {
 public:
  explicit Stage(const char* script, const std::string& dialect = "json_tools")
      : text_(model_text()),
        player_(std::move(*Script::parse(script)), text_, chat::dialect_of(text_, dialect), 4096),
        service_(player_,
                 text_,
                 {.id = "m", .max_context = 4096, .has_chat_template = true},
                 {.tool_dialect = dialect,
                  .on_choice = [this](const chat::Request& request, gen::RequestId id) {
                    player_.announce(request, id);
                  }}) {}

  Result<Heard> ask(chat::Request request) {
    auto heard = std::make_shared<Heard>();
    auto over = std::make_shared<std::promise<void>>();
    auto done = over->get_future();
    const auto accepted = service_.submit(std::move(request), [=](const chat::Event& event) {
      take(event, *heard);
      if (event.is_last()) over->set_value();
    });
    if (!accepted) return accepted.error();
    REQUIRE(done.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
    return *heard;
  }

  chat::Service& service() { return service_; }

 private:
  static void take(const chat::Event& event, Heard& heard) {
    if (const auto* delta = std::get_if<chat::Delta>(&event.body)) {
      (delta->channel == chat::Channel::kText ? heard.text : heard.thinking) += delta->text;
      ++heard.pieces;
    } else if (const auto* started = std::get_if<chat::CallStarted>(&event.body)) {
      heard.calls.push_back(started->name + " ");
    } else if (const auto* part = std::get_if<chat::CallArguments>(&event.body)) {
      heard.calls.back() += part->json;
    } else if (const auto* end = std::get_if<chat::End>(&event.body)) {
      heard.end = *end;
    } else if (const auto* failed = std::get_if<chat::Failed>(&event.body)) {
      heard.failure = failed->error;
    }
  }

  text::ModelText text_;
  Player player_;
  chat::LocalService service_;
};

chat::Request question(const std::string& id = "r", bool open_thinking = false) {
  chat::Request request;
  request.id = id;
  chat::Conversation talk;
  talk.messages = Json::parse(R"J([{"role": "user", "content": "Read a.txt"}])J");
  talk.tools = Json::parse(R"J([{"type": "function", "function": {"name": "read", "parameters":
      {"type": "object", "properties": {"path": {"type": "string"}}}}}])J");
  talk.template_arguments["open_thinking"] = open_thinking;
  request.input = std::move(talk);
  return request;
}

constexpr const char* kScript = R"J({"find": {"user": "Read (?<file>\\S+)"}, "rules": [{"say": [
  {"think": "Which? <x>"}, {"text": "Let me see."},
  {"call": {"name": "read", "arguments": {"path": "${file}"}}},
  {"call": {"name": "read", "arguments": {"path": "b \"c\""}}}]}]})J";

}  // namespace

TEST_CASE("player: one script gives the same thinking, text and calls in every dialect") {
  for (const dialect::Dialect& dialect : dialect::all()) {
    Stage stage(kScript, dialect.name);
    for (const bool open : {false, true}) {
      if (open && dialect.syntax->owns_answer()) continue;
      CAPTURE(dialect.name);
      CAPTURE(open);
      // The service may hold the first request's id for a moment after its last event.
      const auto heard = stage.ask(question(open ? "open" : "closed", open));
      REQUIRE(heard);
      CHECK(heard->thinking == "Which? <x>");
      CHECK(heard->text == "Let me see.");
      REQUIRE(heard->calls.size() == 2);
      CHECK(Json::parse(heard->calls[0].substr(5)) == Json{{"path", "a.txt"}});
      CHECK(Json::parse(heard->calls[1].substr(5)) == Json{{"path", "b \"c\""}});
      CHECK(heard->end->reason == chat::FinishReason::kToolCalls);
    }
  }
}

TEST_CASE("player: what is asked again is reused, but for one token") {
  Stage stage(R"J({"rules": [{"say": "Yes."}]})J");
  const auto first = stage.ask(question());
  CHECK(first->end->usage.cached_tokens == 0);
  const auto again = stage.ask(question("again"));
  CHECK(again->end->usage.cached_tokens == again->end->usage.prompt_tokens - 1);
  chat::Request other = question("other");
  other.salt = "another key";
  CHECK(stage.ask(std::move(other))->end->usage.cached_tokens == 0);
}

TEST_CASE("player: steps have as many tokens as the pace says, and max_tokens cuts") {
  Stage slow(
      R"J({"pace": {"tokens": 1, "first_ms": 30, "step_ms": 10}, "rules": [{"say": "abcdef"}]})J");
  const auto begin = std::chrono::steady_clock::now();
  const auto pieces = slow.ask(question())->pieces;
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(30));
  Stage fast(R"J({"pace": {"tokens": 100}, "rules": [{"say": "abcdef"}]})J");
  CHECK(fast.ask(question())->pieces <= pieces);
  chat::Request cut = question("cut");
  cut.max_tokens = 2;
  const auto heard = fast.ask(std::move(cut));
  CHECK(heard->end->reason == chat::FinishReason::kLength);
  CHECK(heard->end->usage.completion_tokens == 2);
}

TEST_CASE("player: a script can refuse, fail behind its words, and hang until cancelled") {
  Stage stage(R"J({"rules": [
    {"when": {"last": "^fail"}, "say": "Well", "fail": {"code": "io", "message": "no disk"}},
    {"when": {"last": "^hang"}, "say": "Well", "hang": true},
    {"when": {"last": "^never"}, "refuse": {"code": "unavailable", "message": "gone"}}]})J");
  const auto said = [](const char* text) {
    chat::Request request = question(text);
    std::get<chat::Conversation>(request.input).messages[0]["content"] = text;
    return request;
  };
  const auto failed = stage.ask(said("fail"));
  CHECK(failed->text == "Well");
  CHECK(failed->failure == Error{ErrorCode::kIo, "no disk"});
  CHECK(stage.ask(said("never")).error().code == ErrorCode::kUnavailable);
  CHECK(stage.ask(said("other")).error().code == ErrorCode::kInvalid);
  auto hung = std::async(std::launch::async, [&] { return stage.ask(said("hang")); });
  while (!stage.service().cancel("hang")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto heard = hung.get();
  CHECK(heard->failure->code == ErrorCode::kCancelled);
}

TEST_CASE("player: an embedding is refused by name") {
  Stage stage(kScript);
  chat::EmbeddingRequest request{.id = "e", .inputs = {{std::string("a")}}};
  std::promise<Error> told;
  const auto taken = stage.service().embed(request, [&](const chat::EmbeddingEvent& event) {
    if (const auto* error = std::get_if<Error>(&event)) told.set_value(*error);
  });
  REQUIRE(taken.has_value());
  CHECK(told.get_future().get().code == ErrorCode::kUnsupported);
}

TEST_CASE("player: an answer whose thought was closed early goes on behind its thinking") {
  const text::ModelText text = model_text();
  const dialect::Dialect& json_tools = chat::dialect_of(text, "json_tools");
  Player player(std::move(*Script::parse(
                    R"J({"rules": [{"say": [{"think": "a long thought"}, {"text": "Yes."}]}]})J")),
                text, json_tools, 4096);
  const auto said = [&](const char* emitted) {
    gen::Request request{.id = 7, .prompt = {1, 2}, .sampling = {}};
    request.emitted = *text.tokenizer->encode(emitted, false);
    player.announce(question(), request.id);
    std::string heard;
    std::promise<void> over;
    REQUIRE(player.submit(request, [&](const gen::Event& event) {
      if (const auto* tokens = std::get_if<gen::Tokens>(&event.body)) {
        for (const gen::Token& token : tokens->tokens) heard += text.tokenizer->bytes(token.id);
      }
      if (event.is_last()) over.set_value();
    }));
    over.get_future().wait();
    return heard;
  };
  CHECK(said("<think>a long").starts_with(" thought</think>Yes."));
  CHECK(said("<think>a lo</think>").starts_with("Yes."));
  // What goes on is finished while the server drains, and nothing new begins.
  player.drain();
  CHECK(said("<think>a long").starts_with(" thought</think>Yes."));
  player.announce(question(), 8);
  const Status refused =
      player.submit({.id = 8, .prompt = {1, 2}, .sampling = {}}, [](const gen::Event&) {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnavailable);
  CHECK(refused.error().message.find("shutting down") != std::string::npos);
}
