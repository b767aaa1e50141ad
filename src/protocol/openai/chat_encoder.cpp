#include "protocol/openai/chat_encoder.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "net/sse.h"

namespace tandem::protocol::openai {
namespace {

Json encode_logprobs(const std::vector<chat::LogprobEntry>& entries) {
  return Json{{"content", encode_tokens(entries)}, {"refusal", nullptr}};
}

Json encode_calls(const Answer& answer) {
  Json calls = Json::array();
  for (const Block& block : answer.blocks) {
    if (block.kind != Block::Kind::kCall) continue;
    Json function;
    function["name"] = block.name;
    function["arguments"] = block.text.empty() ? "{}" : block.text;
    Json call;
    call["id"] = block.id;
    call["type"] = "function";
    call["function"] = std::move(function);
    calls.push_back(std::move(call));
  }
  return calls;
}

Json encode_message(const Answer& answer) {
  const std::string text = answer.joined(Block::Kind::kText);
  const std::string thinking = answer.joined(Block::Kind::kThinking);
  Json message;
  message["role"] = "assistant";
  message["content"] = text.empty() && answer.has_calls() ? Json(nullptr) : Json(text);
  message["refusal"] = nullptr;
  if (!thinking.empty()) {
    message["reasoning"] = thinking;
    message["reasoning_content"] = thinking;
  }
  if (answer.has_calls()) message["tool_calls"] = encode_calls(answer);
  return message;
}

class ChatEncoder final : public AnswerEncoder {
 public:
  explicit ChatEncoder(AnswerHead head) : head_(std::move(head)) {
    chunk_start_ = dump(encode_head(head_, kChunk));
    chunk_start_.back() = ',';
    chunk_end_ = head_.include_usage ? "],\"usage\":null" : "]";
  }

  std::string delta(uint32_t choice, const chat::Delta& delta) override {
    std::string out = open_choice(choice);
    if (delta.text.empty() && delta.logprobs.empty()) return out;
    std::string fields;
    const std::string text = literal(delta.text);
    if (delta.channel == chat::Channel::kText) {
      fields = fmt::format(R"("content":{})", text);
    } else {
      fields = fmt::format(R"("reasoning":{0},"reasoning_content":{0})", text);
    }
    const std::string logprobs =
        head_.logprobs ? dump(encode_logprobs(delta.logprobs)) : std::string("null");
    return out + chunk(choice, fields, logprobs, "null");
  }

  std::string call_started(uint32_t choice, const chat::CallStarted& call) override {
    with_arguments_.erase(choice);
    return open_choice(choice) +
           call_chunk(choice, call.call,
                      fmt::format(R"("id":{},"type":"function","function":{{"name":{},)"
                                  R"("arguments":""}})",
                                  literal(call.id), literal(call.name)));
  }

  std::string call_arguments(uint32_t choice, const chat::CallArguments& piece) override {
    if (piece.json.empty()) return {};
    with_arguments_.insert(choice);
    return call_chunk(choice, piece.call,
                      fmt::format(R"("function":{{"arguments":{}}})", literal(piece.json)));
  }

  /// Clients parse the arguments of a call without any, too.
  std::string call_ended(uint32_t choice, const chat::CallEnded& call) override {
    if (with_arguments_.contains(choice)) return {};
    return call_arguments(choice, {.call = call.call, .json = "{}"});
  }

  std::string end(uint32_t choice, const chat::End& end) override {
    std::string finish = fmt::format("\"{}\"", name(end.reason));
    if (const Json detail = finish_detail(end); !detail.is_null()) {
      finish += ",\"finish_detail\":" + dump(detail);
    }
    return open_choice(choice) + chunk(choice, "", "null", finish);
  }

  std::string close(const chat::Usage& total) override {
    return encode_close(head_, kChunk, total);
  }

  std::string whole(const std::vector<Answer>& answers, const chat::Usage& total) override {
    Json out = encode_head(head_, "chat.completion");
    out["choices"] = Json::array();
    for (size_t i = 0; i < answers.size(); ++i) {
      const Answer& answer = answers[i];
      Json choice;
      choice["index"] = i;
      choice["message"] = encode_message(answer);
      choice["logprobs"] = head_.logprobs ? encode_logprobs(answer.logprobs) : Json(nullptr);
      choice["finish_reason"] = name(answer.end.reason);
      Json detail = finish_detail(answer.end);
      if (!detail.is_null()) choice["finish_detail"] = std::move(detail);
      out["choices"].push_back(std::move(choice));
    }
    out["usage"] = encode_usage(total);
    if (!head_.warnings.empty()) out["warnings"] = encode_warnings(head_.warnings);
    return dump(out);
  }

 private:
  /// The role comes first, once a choice; warnings once.
  std::string open_choice(uint32_t choice) {
    if (!opened_.insert(choice).second) return {};
    std::string warnings;
    if (opened_.size() == 1 && !head_.warnings.empty()) {
      warnings = ",\"warnings\":" + dump(encode_warnings(head_.warnings));
    }
    return chunk(choice, R"("role":"assistant","content":"")", "null", "null", warnings);
  }

  std::string call_chunk(uint32_t choice, uint32_t call, std::string_view fields) const {
    return chunk(choice, fmt::format(R"("tool_calls":[{{"index":{},{}}}])", call, fields), "null",
                 "null");
  }

  std::string chunk(uint32_t choice,
                    std::string_view delta,
                    std::string_view logprobs,
                    std::string_view finish,
                    std::string_view more = {}) const {
    return net::encode_sse(fmt::format(
        R"({}"choices":[{{"index":{},"delta":{{{}}},"logprobs":{},"finish_reason":{}}}{}{}}})",
        chunk_start_, choice, delta, logprobs, finish, chunk_end_, more));
  }

  static constexpr const char* kChunk = "chat.completion.chunk";

  const AnswerHead head_;
  std::string chunk_start_;
  std::string chunk_end_;
  std::set<uint32_t> opened_;
  std::set<uint32_t> with_arguments_;  // choices whose open call has some
};

}  // namespace

std::unique_ptr<AnswerEncoder> make_chat_encoder(AnswerHead head) {
  return std::make_unique<ChatEncoder>(std::move(head));
}

}  // namespace tandem::protocol::openai
