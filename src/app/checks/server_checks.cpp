// Checks of what all wires have in common.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "app/checks/checks.h"
#include "app/server_json.h"

namespace tandem::app::checks {
namespace {

constexpr auto kCancelLimit = std::chrono::seconds(5);

/// A refusal of this status whose message has the word.
Verdict refused(const Result<Answer>& answer, int status, const std::string& word) {
  if (!answer) return failed(answer.error().message);
  const std::string message = text_of(member_of(answer->body, "error"), "message");
  if (answer->status != status)
    return failed(fmt::format("expected status {}, got {}", status, answer->told()));
  if (message.find(word) == std::string::npos)
    return failed(fmt::format("the message does not name {}: {}", word, message));
  return ok(message);
}

/// The request's outcome in GET /v1/requests; empty while it runs, or when it is not there.
std::string outcome_of(const Target& target, const std::string& id) {
  const auto listed = target.get("/v1/requests");
  if (!listed) return {};
  for (const Json& entry : member_of(listed->body, "recent")) {
    if (text_of(entry, "id") == id) return text_of(entry, "outcome");
  }
  return {};
}

}  // namespace

Verdict health(Target& target) {
  for (const char* path : {"/health/live", "/health"}) {
    const auto answer = target.get(path);
    if (!answer) return failed(answer.error().message);
    if (answer->status != 200) return failed(fmt::format("{}: {}", path, answer->told()));
  }
  return ok("live and ready");
}

Verdict models(Target& target) {
  const auto answer = target.get("/v1/models");
  if (!answer) return failed(answer.error().message);
  if (answer->status != 200) return failed(answer->told());
  const Json& first = first_of(member_of(answer->body, "data"));
  target.model = text_of(first, "id");
  target.context = number_of(first, "context_length");
  if (target.model.empty()) return failed("no model is listed");
  if (target.context == 0) return failed("the model has no context_length");
  return ok(fmt::format("{}, {} tokens", target.model, target.context));
}

Verdict unknown_model(Target& target) {
  Json body = body_of(target, "Hello", 4);
  body["model"] = "no-such-model";
  return refused(target.post("/v1/chat/completions", body), 404, "no-such-model");
}

Verdict bad_field(Target& target) {
  Json body = body_of(target, "Hello", 4);
  body["temperature"] = -1;
  return refused(target.post("/v1/chat/completions", body), 400, "temperature");
}

Verdict too_long(Target& target) {
  if (target.context == 0) return skipped("the context is not known");
  std::string words;
  for (uint64_t i = 0; i < target.context + 16; ++i) words += " one";
  const Json body = body_of(target, words.c_str(), 4);
  const auto answer = target.post("/v1/chat/completions", body);
  const Verdict verdict = refused(answer, 400, "prompt is too long: ");
  if (verdict.state != Verdict::State::kOk) return verdict;
  return refused(answer, 400, fmt::format("> {} maximum", target.context - 1));
}

Verdict cancel(Target& target) {
  Json body = body_of(target, "Count from one to ten thousand.", 1000);
  body["stream"] = true;
  body["ignore_eos"] = true;
  const auto stream = target.stream("/v1/chat/completions", body, 1);
  if (!stream) return failed(stream.error().message);
  if (stream->data.empty()) return failed(stream->head.told());
  const std::string id = text_of(stream->data.front(), "id");
  const auto end = std::chrono::steady_clock::now() + kCancelLimit;
  while (std::chrono::steady_clock::now() < end) {
    const std::string outcome = outcome_of(target, id);
    if (outcome == "cancelled") return ok("a closed stream ends its request");
    if (outcome == "finished") return skipped("the answer was over before the stream was closed");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return failed(fmt::format("the request {} goes on after its stream was closed", id));
}

}  // namespace tandem::app::checks
