#include "protocol/openai/responses_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "net/sse.h"
#include "protocol/errors.h"
#include "protocol/message_rules.h"
#include "protocol/openai/custom_input.h"
#include "protocol/openai/responses_request.h"

namespace tandem::protocol::openai {
namespace {

using Kind = Block::Kind;

Json responses_usage(const chat::Usage& usage) {
  Json out;
  out["input_tokens"] = usage.prompt_tokens;
  out["input_tokens_details"] = Json{{"cached_tokens", usage.cached_tokens}};
  out["output_tokens"] = usage.completion_tokens;
  out["output_tokens_details"] = Json{{"reasoning_tokens", usage.reasoning_tokens}};
  out["total_tokens"] = uint64_t{usage.prompt_tokens} + usage.completion_tokens;
  return out;
}

/// Makes output items of blocks.
class Items {
 public:
  /// `handle` on the answer, for reasoning items; empty: they have none.
  Items(std::string response, ToolNames names, std::string handle)
      : suffix_(response.substr(std::min(response.find('_') + 1, response.size()))),
        names_(std::move(names)),
        handle_(std::move(handle)) {}

  bool is_custom(const Block& block) const {
    const auto known = names_.find(block.name);
    return known != names_.end() && known->second.custom;
  }

  std::string id(const Block& block, size_t index) const {
    const char* prefix = "msg";
    if (block.kind == Kind::kThinking) prefix = "rs";
    if (block.kind == Kind::kCall) prefix = is_custom(block) ? "ctc" : "fc";
    return fmt::format("{}_{}{:02x}", prefix, suffix_, index);
  }

  /// The part of an item of text or thinking.
  static Json part(const Block& block) {
    if (block.kind == Kind::kThinking) {
      return Json{{"type", "reasoning_text"}, {"text", block.text}};
    }
    Json out;
    out["type"] = "output_text";
    out["text"] = block.text;
    out["annotations"] = Json::array();
    out["logprobs"] = Json::array();
    return out;
  }

  /// A whole item, or one that begins: without its content.
  Json item(const Block& block, size_t index, bool whole) const {
    Json out;
    out["id"] = id(block, index);
    if (block.kind == Kind::kCall) {
      add_call(block, whole, out);
    } else if (block.kind == Kind::kThinking) {
      out["type"] = "reasoning";
      out["summary"] = Json::array();
      out["content"] = whole ? Json::array({part(block)}) : Json::array();
      out["encrypted_content"] = whole && !handle_.empty() ? Json(handle_) : Json(nullptr);
    } else {
      out["type"] = "message";
      out["role"] = "assistant";
      out["content"] = whole ? Json::array({part(block)}) : Json::array();
    }
    const char* const at_end = block.is_complete ? "completed" : "incomplete";
    out["status"] = whole ? at_end : "in_progress";
    return out;
  }

 private:
  void add_call(const Block& block, bool whole, Json& out) const {
    const auto known = names_.find(block.name);
    out["type"] = is_custom(block) ? "custom_tool_call" : "function_call";
    out["call_id"] = block.id;
    out["name"] = known == names_.end() ? block.name : known->second.name;
    if (known != names_.end() && !known->second.name_space.empty()) {
      out["namespace"] = known->second.name_space;
    }
    if (is_custom(block)) {
      out["input"] = whole ? custom_input(block.text) : "";
    } else {
      const char* const none = whole ? "{}" : "";
      out["arguments"] = whole && !block.text.empty() ? block.text : none;
    }
  }

  const std::string suffix_;
  const ToolNames names_;
  const std::string handle_;
};

class ResponsesEncoder final : public AnswerEncoder {
 public:
  ResponsesEncoder(AnswerHead head, const Json& notes)
      : head_(std::move(head)),
        echo_(notes["echo"]),
        items_(head_.id,
               names_in(notes),
               notes.value("encrypted", false) ? head_.turn_handle : std::string()) {}

  std::string accepted(uint32_t) override {
    queued_ = echo_.value("background", false);
    if (queued_) {
      const Json waiting{{"response", response("queued")}};
      std::string out = event("response.created", waiting);
      return out += event("response.queued", waiting);
    }
    const Json fields{{"response", response("in_progress")}};
    std::string out = event("response.created", fields);
    return out += event("response.in_progress", fields);
  }

  std::string delta(uint32_t, const chat::Delta& delta) override {
    if (delta.text.empty()) return {};
    if (delta.channel == chat::Channel::kThinking) return write(Kind::kThinking, delta.text);
    blank_ += delta.text;
    if ((!open_ || open_->kind != Kind::kText) && is_blank(blank_)) return {};
    return write(Kind::kText, std::exchange(blank_, {}));
  }

  std::string call_started(uint32_t, const chat::CallStarted& call) override {
    std::string out = close_item();
    input_ = {};
    return out += open_item({.kind = Kind::kCall, .text = {}, .id = call.id, .name = call.name});
  }

  std::string call_arguments(uint32_t, const chat::CallArguments& piece) override {
    if (!open_ || open_->kind != Kind::kCall || piece.json.empty()) return {};
    open_->text += piece.json;
    if (items_.is_custom(*open_)) return write_input(input_.feed(piece.json));
    return event("response.function_call_arguments.delta", at_item({{"delta", piece.json}}));
  }

  std::string call_ended(uint32_t, const chat::CallEnded& call) override {
    if (open_) open_->is_complete = call.is_complete;
    return close_item();
  }

  std::string end(uint32_t, const chat::End& end) override {
    end_ = end;
    return close_item();
  }

  std::string close(const chat::Usage& total) override {
    const bool cut = end_.reason == chat::FinishReason::kLength;
    return event(cut ? "response.incomplete" : "response.completed",
                 {{"response", ended_response(end_, total)}});
  }

  net::Response refusal(const Error& error) override { return error_response(of_responses(error)); }

  std::string failed(const Error& error) override {
    const bool is_cancelled = error.code == ErrorCode::kCancelled;
    Json out = response(is_cancelled ? "cancelled" : "failed");
    if (is_cancelled) return event("response.failed", {{"response", std::move(out)}});
    const bool is_busy = error.code == ErrorCode::kBusy;
    const std::string code = code_of(error);
    out["error"] = Json{{"code", is_busy                             ? "rate_limit_exceeded"
                                 : code == "context_length_exceeded" ? code
                                                                     : "server_error"},
                        {"message", error.message}};
    return event("response.failed", {{"response", std::move(out)}});
  }

  /// Codex counts events, and comments are none to it.
  std::string waiting(const chat::Progress*, std::chrono::milliseconds) override {
    queued_ = false;
    return event("response.in_progress", {{"response", response("in_progress")}});
  }

  std::string whole(const std::vector<Answer>& answers, const chat::Usage& total) override {
    const Answer& answer = answers.front();
    for (const Block& block : answer.blocks) {
      if (block.kind == Kind::kText && is_blank(block.text)) continue;
      output_.push_back(items_.item(block, output_.size(), true));
    }
    return dump(ended_response(answer.end, total));
  }

 private:
  Json response(const char* status) const {
    Json out;
    out["id"] = head_.id;
    out["object"] = "response";
    out["created_at"] = head_.created;
    out["status"] = status;
    out["background"] = false;
    out["error"] = nullptr;
    out["incomplete_details"] = nullptr;
    out["instructions"] = nullptr;
    out["model"] = head_.model;
    out["output"] = output_;
    out["previous_response_id"] = nullptr;
    out["store"] = false;
    out["text"] = Json{{"format", {{"type", "text"}}}};
    out["tools"] = Json::array();
    out["truncation"] = "disabled";
    out["usage"] = nullptr;
    for (const auto& [name, value] : echo_.items()) out[name] = value;
    if (!head_.warnings.empty()) out["warnings"] = encode_warnings(head_.warnings);
    return out;
  }

  Json ended_response(const chat::End& end, const chat::Usage& total) const {
    const bool cut = end.reason == chat::FinishReason::kLength;
    Json out = response(cut ? "incomplete" : "completed");
    if (cut) out["incomplete_details"] = Json{{"reason", "max_output_tokens"}};
    out["usage"] = responses_usage(total);
    Json detail = finish_detail(end);
    if (!detail.is_null()) out["finish_detail"] = std::move(detail);
    return out;
  }

  std::string event(const char* type, const Json& fields) {
    Json out{{"type", type}, {"sequence_number", sequence_++}};
    for (const auto& [name, value] : fields.items()) out[name] = value;
    return net::encode_sse(dump(out), type);
  }

  /// The fields that say where the open item is.
  Json at_item(const Json& fields) const {
    Json out{{"item_id", items_.id(*open_, output_.size())}, {"output_index", output_.size()}};
    for (const auto& [name, value] : fields.items()) out[name] = value;
    return out;
  }

  Json at_part(const Json& fields) const {
    Json out = at_item({{"content_index", 0}});
    for (const auto& [name, value] : fields.items()) out[name] = value;
    return out;
  }

  /// A piece of text or thinking.
  std::string write(Kind kind, const std::string& text) {
    std::string out;
    if (!open_ || open_->kind != kind) {
      out = close_item();
      out += open_item({.kind = kind, .text = {}, .id = {}, .name = {}});
    }
    open_->text += text;
    if (kind == Kind::kThinking) {
      return out += event("response.reasoning_text.delta", at_part({{"delta", text}}));
    }
    return out += event("response.output_text.delta",
                        at_part({{"delta", text}, {"logprobs", Json::array()}}));
  }

  /// A piece of what a custom tool is given.
  std::string write_input(const std::string& text) {
    if (text.empty()) return {};
    return event("response.custom_tool_call_input.delta", at_item({{"delta", text}}));
  }

  std::string open_item(Block block) {
    open_ = std::move(block);
    if (open_->kind != Kind::kText) blank_.clear();
    const size_t index = output_.size();
    std::string out = std::exchange(queued_, false) ? waiting(nullptr, {}) : std::string();
    out += event("response.output_item.added",
                 {{"output_index", index}, {"item", items_.item(*open_, index, false)}});
    if (open_->kind == Kind::kCall) return out;
    return out += event("response.content_part.added", at_part({{"part", Items::part(*open_)}}));
  }

  std::string close_item() {
    if (!open_) return {};
    const size_t index = output_.size();
    Json item = items_.item(*open_, index, true);
    std::string out = open_->kind == Kind::kCall ? close_call(item) : close_part();
    out += event("response.output_item.done", {{"output_index", index}, {"item", item}});
    output_.push_back(std::move(item));
    open_.reset();
    return out;
  }

  std::string close_part() {
    std::string out;
    if (open_->kind == Kind::kThinking) {
      out = event("response.reasoning_text.done", at_part({{"text", open_->text}}));
    } else {
      out = event("response.output_text.done",
                  at_part({{"text", open_->text}, {"logprobs", Json::array()}}));
    }
    return out += event("response.content_part.done", at_part({{"part", Items::part(*open_)}}));
  }

  std::string close_call(const Json& item) {
    if (!items_.is_custom(*open_)) {
      return event("response.function_call_arguments.done",
                   at_item({{"name", item["name"]}, {"arguments", item["arguments"]}}));
    }
    std::string out = write_input(input_.end());
    return out +=
           event("response.custom_tool_call_input.done", at_item({{"input", item["input"]}}));
  }

  const AnswerHead head_;
  const Json echo_;
  const Items items_;
  Json output_ = Json::array();  // items that are whole
  std::optional<Block> open_;
  CustomInput input_;  // of the open item
  std::string blank_;  // white space that no item has yet
  chat::End end_;
  uint64_t sequence_ = 0;
  bool queued_ = false;  // in the background, and nothing was made yet
};

}  // namespace

Error of_responses(Error error) {
  if (error.field == "messages") error.field = "input";
  return error;
}

std::unique_ptr<AnswerEncoder> make_responses_encoder(AnswerHead head, const Json& notes) {
  return std::make_unique<ResponsesEncoder>(std::move(head), notes);
}

}  // namespace tandem::protocol::openai
