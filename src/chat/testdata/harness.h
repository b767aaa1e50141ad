// A service over a scripted generator, for tests of this folder.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chat/local_service.h"
#include "gen/fake.h"
#include "text/testdata/fixtures.h"

namespace tandem::chat {

/// What the client of one choice saw.
struct Seen {
  std::string text;
  std::string thinking;
  std::vector<LogprobEntry> logprobs;
  std::vector<Event> events;
  std::vector<End> ends;
  std::vector<Failed> failures;

  size_t last_events() const { return ends.size() + failures.size(); }

  void add(const Event& event) {
    events.push_back(event);
    if (const auto* delta = std::get_if<Delta>(&event.body)) {
      (delta->channel == Channel::kText ? text : thinking) += delta->text;
      logprobs.insert(logprobs.end(), delta->logprobs.begin(), delta->logprobs.end());
    } else if (const auto* end = std::get_if<End>(&event.body)) {
      ends.push_back(*end);
    } else if (const auto* failed = std::get_if<Failed>(&event.body)) {
      failures.push_back(*failed);
    }
  }
};

constexpr const char* kChatTemplate =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if open_thinking %}<think>\n{% endif %}{% endif %}";

inline text::ModelText fixture_model(const std::string& chat_template = kChatTemplate) {
  auto model = text::load_model_text(
      text::TokenizerFiles{.tokenizer_json = text::read_testdata("byte_level.json"),
                           .tokenizer_config = R"({"eos_token": "<|im_end|>"})",
                           .chat_template_jinja = chat_template},
      nlohmann::json::object());
  TANDEM_CHECK(model.has_value(), "{}", model.error().message);
  return std::move(model).value();
}

/// Scripts are set per test; events are delivered by run().
class Harness {
 public:
  explicit Harness(gen::Fake::Delivery delivery = gen::Fake::Delivery::kOnDemand,
                   uint32_t max_context = 4096)
      : model(fixture_model()),
        fake(
            {.vocab = 320, .max_context = max_context},
            [this](const gen::Request& request) { return script(request); },
            delivery),
        service(fake, model, {.id = "m", .has_chat_template = true}, {}) {}

  std::vector<gen::TokenId> encode(const std::string& text) const {
    return *model.tokenizer->encode(text, false);
  }

  /// The answer is this text's tokens, then the end-of-text token unless `ends` is false.
  void answer(const std::string& text, bool ends = true) {
    reply.tokens = encode(text);
    if (ends) reply.tokens.push_back(model.eos.front());
  }

  /// The answer is one token a byte.
  void answer_bytes(const std::string& text) {
    reply.tokens.clear();
    for (const char c : text) {
      for (gen::TokenId id = 0; id < 256; ++id) {
        if (model.tokenizer->bytes(id) == std::string_view(&c, 1)) reply.tokens.push_back(id);
      }
    }
    reply.tokens.push_back(model.eos.front());
  }

  static Request request(const std::string& id = "r") {
    Request result;
    result.id = id;
    result.input =
        Conversation{.messages = Json::parse(R"([{"role": "user", "content": "hello"}])")};
    return result;
  }

  Sink sink() {
    return [this](const Event& event) {
      const std::lock_guard lock(mutex);
      seen[event.choice].add(event);
    };
  }

  /// Submits and delivers everything.
  const Seen& run(Request asked) {
    seen.clear();
    const auto accepted = service.submit(std::move(asked), sink());
    TANDEM_CHECK(accepted.has_value(), "{}", accepted.error().message);
    while (fake.step()) {
    }
    return seen[0];
  }

  const Seen& run() { return run(request()); }

  std::mutex mutex;
  std::map<uint32_t, Seen> seen;
  text::ModelText model;
  gen::FakeReply reply;
  std::function<gen::FakeReply(const gen::Request&)> script = [this](const gen::Request&) {
    return reply;
  };
  gen::Fake fake;
  LocalService service;
};

}  // namespace tandem::chat
