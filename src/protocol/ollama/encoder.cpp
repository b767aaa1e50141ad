#include "protocol/ollama/encoder.h"

#include <fmt/chrono.h>

#include <chrono>
#include <optional>

#include "protocol/ollama/errors.h"
#include "protocol/openai/encoding.h"

namespace tandem::protocol::ollama {
namespace {

using Kind = Block::Kind;

std::string line(const Json& json) { return dump(json) + "\n"; }

/// Arguments as an object, which is what they are unless a model without a dialect wrote them.
Json parsed_arguments(const std::string& text) {
  Json parsed = Json::parse(text.empty() ? "{}" : text, nullptr, false);
  if (parsed.is_object()) return parsed;
  return Json{{"arguments", parsed.is_discarded() ? Json(text) : std::move(parsed)}};
}

Json encode_call(const Block& call, size_t index) {
  Json function;
  function["index"] = index;
  function["name"] = call.name;
  function["arguments"] = parsed_arguments(call.text);
  return Json{{"id", call.id}, {"function", std::move(function)}};
}

const char* done_reason(chat::FinishReason reason) {
  return reason == chat::FinishReason::kLength ? "length" : "stop";
}

class Encoder final : public AnswerEncoder {
 public:
  Encoder(AnswerHead head, Shape shape)
      : head_(std::move(head)), shape_(shape), submitted_(head_.clock->now()) {}

  void began() override { first_ = head_.clock->now(); }

  std::string delta(uint32_t, const chat::Delta& delta) override {
    const bool tells = head_.logprobs && !delta.logprobs.empty();
    if (delta.text.empty() && !tells) return {};
    const bool is_text = delta.channel == chat::Channel::kText;
    Json out = part(is_text ? delta.text : "", is_text ? "" : delta.text);
    if (tells) out["logprobs"] = openai::encode_tokens(delta.logprobs);
    return line(out);
  }

  std::string call_started(uint32_t, const chat::CallStarted& call) override {
    call_ = {.kind = Kind::kCall, .text = {}, .id = call.id, .name = call.name};
    return {};
  }

  std::string call_arguments(uint32_t, const chat::CallArguments& piece) override {
    call_.text += piece.json;
    return {};
  }

  /// Calls come whole.
  std::string call_ended(uint32_t, const chat::CallEnded& call) override {
    return line(part("", "", Json::array({encode_call(call_, call.call)})));
  }

  std::string end(uint32_t, const chat::End& end) override {
    end_ = end;
    return {};
  }

  std::string close(const chat::Usage& total) override {
    Json last = part("", "");
    add_end(end_, total, last);
    return line(last);
  }

  std::string failed(const Error& error) override { return line(error_body(error)); }

  /// There are no comments between lines of JSON; clients take a piece without text.
  std::string waiting(const chat::Progress*, std::chrono::milliseconds) override {
    return line(part("", ""));
  }

  std::string whole(const std::vector<Answer>& answers, const chat::Usage& total) override {
    const Answer& answer = answers.front();
    Json calls = Json::array();
    for (const Block& block : answer.blocks) {
      if (block.kind == Kind::kCall) calls.push_back(encode_call(block, calls.size()));
    }
    Json out = part(answer.joined(Kind::kText), answer.joined(Kind::kThinking), std::move(calls));
    if (head_.logprobs) out["logprobs"] = openai::encode_tokens(answer.logprobs);
    add_end(answer.end, total, out);
    return dump(out);
  }

  net::Response refusal(const Error& error) override { return error_response(error); }

  net::Headers stream_headers() const override {
    return {{"Content-Type", "application/x-ndjson"}, {"Cache-Control", "no-cache, no-transform"}};
  }

 private:
  /// A piece of the answer, or all of it.
  Json part(const std::string& text, const std::string& thinking, Json calls = Json::array()) {
    Json out;
    out["model"] = head_.model;
    out["created_at"] = timestamp();
    Json message;
    if (shape_ == Shape::kMessage) message["role"] = "assistant";
    message[shape_ == Shape::kMessage ? "content" : "response"] = text;
    if (!thinking.empty()) message["thinking"] = thinking;
    if (!calls.empty()) message["tool_calls"] = std::move(calls);
    if (shape_ == Shape::kMessage) {
      out["message"] = std::move(message);
    } else {
      out.update(message);
    }
    out["done"] = false;
    if (!std::exchange(warned_, true) && !head_.warnings.empty()) {
      out["warnings"] = encode_warnings(head_.warnings);
    }
    return out;
  }

  void add_end(const chat::End& end, const chat::Usage& usage, Json& out) const {
    const TimePoint now = head_.clock->now();
    const TimePoint first = first_.value_or(now);
    out["done"] = true;
    out["done_reason"] = done_reason(end.reason);
    if (Json detail = finish_detail(end); !detail.is_null())
      out["finish_detail"] = std::move(detail);
    out["total_duration"] = (now - submitted_).count();
    out["load_duration"] = 0;
    out["prompt_eval_count"] = usage.prompt_tokens;
    out["prompt_eval_cached_count"] = usage.cached_tokens;
    out["prompt_eval_duration"] = (first - submitted_).count();
    out["eval_count"] = usage.completion_tokens;
    out["eval_reasoning_count"] = usage.reasoning_tokens;
    out["eval_duration"] = (now - first).count();
  }

  const AnswerHead head_;
  const Shape shape_;
  const TimePoint submitted_;
  std::optional<TimePoint> first_;  // part of the answer
  Block call_;                      // the open one
  chat::End end_;
  bool warned_ = false;
};

}  // namespace

std::unique_ptr<AnswerEncoder> make_encoder(AnswerHead head, Shape shape) {
  return std::make_unique<Encoder>(std::move(head), shape);
}

std::string loaded_answer(const std::string& model, Shape shape) {
  Json out{{"model", model}, {"created_at", timestamp()}};
  if (shape == Shape::kMessage) {
    out["message"] = Json{{"role", "assistant"}, {"content", ""}};
  } else {
    out["response"] = "";
  }
  out["done"] = true;
  out["done_reason"] = "load";
  return dump(out);
}

std::string timestamp() {
  using std::chrono::nanoseconds;
  const auto since =
      std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:09}Z",
                     fmt::gmtime(static_cast<std::time_t>(seconds.count())),
                     (since - seconds).count());
}

}  // namespace tandem::protocol::ollama
