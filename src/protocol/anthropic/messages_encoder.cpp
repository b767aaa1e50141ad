#include "protocol/anthropic/messages_encoder.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "net/sse.h"
#include "protocol/anthropic/errors.h"
#include "protocol/json.h"
#include "protocol/message_rules.h"

namespace tandem::protocol::anthropic {
namespace {

using Kind = Block::Kind;

std::string sse(std::string_view type, std::string_view fields) {
  return net::encode_sse(fmt::format(R"({{"type":"{}"{}}})", type, fields), type);
}

/// What was reused is not counted as input. Nothing has to be paid for keeping a prompt: cache
/// creation is always 0.
std::string usage_json(const chat::Usage& usage) {
  return fmt::format(
      R"({{"input_tokens":{},"cache_creation_input_tokens":0,"cache_read_input_tokens":{},)"
      R"("output_tokens":{},"output_tokens_details":{{"thinking_tokens":{}}}}})",
      usage.prompt_tokens - usage.cached_tokens, usage.cached_tokens, usage.completion_tokens,
      usage.reasoning_tokens);
}

/// The stop_reason and stop_sequence members, and finish_detail where there is one.
std::string stop_json(const chat::End& end) {
  const char* reason = "end_turn";
  if (end.reason == chat::FinishReason::kLength) reason = "max_tokens";
  if (end.reason == chat::FinishReason::kToolCalls) reason = "tool_use";
  if (!end.stop_text.empty()) reason = "stop_sequence";
  const Json detail = finish_detail(end);
  return fmt::format(R"("stop_reason":"{}","stop_sequence":{}{})", reason,
                     end.stop_text.empty() ? "null" : literal(end.stop_text),
                     detail.is_null() ? "" : ",\"finish_detail\":" + dump(detail));
}

class MessagesEncoder final : public AnswerEncoder {
 public:
  explicit MessagesEncoder(AnswerHead head) : head_(std::move(head)) {}

  /// The message starts when it is known what was reused.
  std::string accepted(uint32_t prompt_tokens) override {
    usage_.prompt_tokens = prompt_tokens;
    return {};
  }

  std::string delta(uint32_t, const chat::Delta& delta) override {
    if (delta.text.empty()) return {};
    if (delta.channel == chat::Channel::kThinking) {
      std::string out = open(Kind::kThinking);
      return out += piece(delta.text);
    }
    blank_ += delta.text;
    if (open_ != Kind::kText && is_blank(blank_)) return {};
    const std::string text = std::exchange(blank_, {});
    std::string out = open(Kind::kText);
    return out += piece(text);
  }

  std::string call_started(uint32_t, const chat::CallStarted& call) override {
    std::string out = start();
    out += close_block();
    return out += open_block(Kind::kCall,
                             fmt::format(R"("type":"tool_use","id":{},"name":{},"input":{{}})",
                                         literal(call.id), literal(call.name)));
  }

  std::string call_arguments(uint32_t, const chat::CallArguments& arguments) override {
    return open_ == Kind::kCall && !arguments.json.empty() ? piece(arguments.json) : std::string();
  }

  /// At once: clients run the tool when its block stops.
  std::string call_ended(uint32_t, const chat::CallEnded&) override { return close_block(); }

  std::string end(uint32_t, const chat::End& end) override {
    std::string out = start();
    out += close_block();
    return out += sse("message_delta", fmt::format(R"(,"delta":{{{}}},"usage":{})", stop_json(end),
                                                   usage_json(end.usage)));
  }

  std::string close(const chat::Usage&) override { return sse("message_stop", ""); }

  std::string failed(const Error& error) override {
    return net::encode_sse(dump(error_body(error)), "error");
  }

  std::string waiting(const chat::Progress* progress, std::chrono::milliseconds silence) override {
    std::string out;
    if (progress) {
      usage_.cached_tokens = progress->cached;
      out = start();
    }
    if (silence < kPatience) return out + sse("ping", "");
    if (!open_) out += open(Kind::kText);
    return out + piece("");
  }

  std::string whole(const std::vector<Answer>& answers, const chat::Usage& total) override {
    const Answer& answer = answers.front();
    std::string content;
    for (const Block& block : answer.blocks) {
      if (block.kind == Kind::kText && is_blank(block.text)) continue;
      if (!content.empty()) content += ',';
      content += '{' + encode_block(block) + '}';
    }
    return fmt::format(R"({{{},"content":[{}],{},"usage":{}{}}})", head(), content,
                       stop_json(answer.end), usage_json(total), warnings());
  }

  net::Response refusal(const Error& error) override { return error_response(error); }

  net::Headers headers() const override { return {{"Request-Id", head_.id}}; }

 private:
  std::string head() const {
    return fmt::format(R"("id":{},"type":"message","role":"assistant","model":{})",
                       literal(head_.id), literal(head_.model));
  }

  std::string warnings() const {
    if (head_.warnings.empty()) return {};
    return ",\"warnings\":" + dump(encode_warnings(head_.warnings));
  }

  /// Arguments are JSON already; numbers stay as the model wrote them.
  std::string encode_block(const Block& block) const {
    if (block.kind == Kind::kText) {
      return fmt::format(R"("type":"text","text":{})", literal(block.text));
    }
    if (block.kind == Kind::kThinking) {
      return fmt::format(R"("type":"thinking","thinking":{},"signature":{})", literal(block.text),
                         literal(head_.turn_handle));
    }
    const bool is_json = Json::accept(block.text);
    return fmt::format(R"("type":"tool_use","id":{},"name":{},"input":{})", literal(block.id),
                       literal(block.name), is_json ? block.text : "{}");
  }

  /// The message itself, once.
  std::string start() {
    if (std::exchange(started_, true)) return {};
    return sse(
        "message_start",
        fmt::format(R"(,"message":{{{},"content":[],"stop_reason":null,"stop_sequence":null,)"
                    R"("usage":{}{}}})",
                    head(), usage_json(usage_), warnings()));
  }

  /// Makes a block of text or thinking the open one.
  std::string open(Kind kind) {
    if (open_ == kind) return {};
    std::string out = start();
    out += close_block();
    const bool is_text = kind == Kind::kText;
    return out += open_block(kind, is_text ? R"("type":"text","text":"")"
                                           : R"("type":"thinking","thinking":"","signature":"")");
  }

  std::string open_block(Kind kind, std::string_view content) {
    open_ = kind;
    if (kind != Kind::kText) blank_.clear();
    return sse("content_block_start",
               fmt::format(R"(,"index":{},"content_block":{{{}}})", index_, content));
  }

  /// A piece of the open block.
  std::string piece(std::string_view text) const {
    const char* form = R"("type":"text_delta","text":{})";
    if (open_ == Kind::kThinking) form = R"("type":"thinking_delta","thinking":{})";
    if (open_ == Kind::kCall) form = R"("type":"input_json_delta","partial_json":{})";
    return block_delta(fmt::format(fmt::runtime(form), literal(text)));
  }

  std::string block_delta(std::string_view delta) const {
    return sse("content_block_delta", fmt::format(R"(,"index":{},"delta":{{{}}})", index_, delta));
  }

  std::string close_block() {
    if (!open_) return {};
    std::string out;
    if (open_ == Kind::kThinking) {
      out = block_delta(
          fmt::format(R"("type":"signature_delta","signature":{})", literal(head_.turn_handle)));
    }
    out += sse("content_block_stop", fmt::format(R"(,"index":{})", index_++));
    open_.reset();
    return out;
  }

  const AnswerHead head_;
  bool started_ = false;
  chat::Usage usage_;         // as far as known when the message starts
  std::optional<Kind> open_;  // the block
  uint32_t index_ = 0;        // its, or the next one's
  std::string blank_;         // white space that no block has yet
};

}  // namespace

std::unique_ptr<AnswerEncoder> make_messages_encoder(AnswerHead head) {
  return std::make_unique<MessagesEncoder>(std::move(head));
}

}  // namespace tandem::protocol::anthropic
