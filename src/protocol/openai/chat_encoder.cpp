#include "protocol/openai/chat_encoder.h"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <utility>

#include "net/sse.h"
#include "protocol/openai/custom_input.h"

namespace tandem::protocol::openai {
namespace {

Json encode_logprobs(const std::vector<chat::LogprobEntry>& entries) {
  return Json{{"content", encode_tokens(entries)}, {"refusal", nullptr}};
}

/// How a kind of call is written: what it is, and the name of what is given to it.
struct CallWords {
  const char* kind;
  const char* content;
};

constexpr CallWords kFunctionWords{.kind = "function", .content = "arguments"};
constexpr CallWords kCustomWords{.kind = "custom", .content = "input"};

class ChatEncoder final : public AnswerEncoder {
 public:
  ChatEncoder(AnswerHead head, std::set<std::string> custom)
      : head_(std::move(head)), custom_(std::move(custom)) {
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
    open_calls_[choice] = {.is_custom = custom_.contains(call.name)};
    const CallWords& words = words_of(call.name);
    const std::string start =
        fmt::format(R"("id":{0},"type":"{1}","{1}":{{"name":{2},"{3}":""}})", literal(call.id),
                    words.kind, literal(call.name), words.content);
    return open_choice(choice) + call_chunk(choice, call.call, start);
  }

  std::string call_arguments(uint32_t choice, const chat::CallArguments& piece) override {
    OpenCall& open = open_calls_[choice];
    open.has_arguments |= !piece.json.empty();
    return call_piece(choice, piece.call,
                      open.is_custom ? open.input.feed(piece.json) : piece.json);
  }

  /// Clients parse the arguments of a call without any, too.
  std::string call_ended(uint32_t choice, const chat::CallEnded& call) override {
    OpenCall& open = open_calls_[choice];
    if (open.is_custom) return call_piece(choice, call.call, open.input.end());
    return call_piece(choice, call.call, open.has_arguments ? "" : "{}");
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
  const CallWords& words_of(const std::string& tool) const {
    return custom_.contains(tool) ? kCustomWords : kFunctionWords;
  }

  Json encode_call(const Block& block) const {
    const CallWords& words = words_of(block.name);
    const std::string arguments = block.text.empty() ? "{}" : block.text;
    Json inner;
    inner["name"] = block.name;
    inner[words.content] = custom_.contains(block.name) ? custom_input(block.text) : arguments;
    Json call;
    call["id"] = block.id;
    call["type"] = words.kind;
    call[words.kind] = std::move(inner);
    return call;
  }

  Json encode_message(const Answer& answer) const {
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
    for (const Block& block : answer.blocks) {
      if (block.kind == Block::Kind::kCall) message["tool_calls"].push_back(encode_call(block));
    }
    return message;
  }

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

  /// More of a call's arguments, or of its text.
  std::string call_piece(uint32_t choice, uint32_t call, const std::string& text) {
    if (text.empty()) return {};
    const CallWords& words = open_calls_[choice].is_custom ? kCustomWords : kFunctionWords;
    return call_chunk(choice, call,
                      fmt::format(R"("{}":{{"{}":{}}})", words.kind, words.content, literal(text)));
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

  /// The call of a choice that is being written.
  struct OpenCall {
    bool is_custom = false;
    bool has_arguments = false;
    CustomInput input = {};
  };

  const AnswerHead head_;
  const std::set<std::string> custom_;
  std::string chunk_start_;
  std::string chunk_end_;
  std::set<uint32_t> opened_;
  std::map<uint32_t, OpenCall> open_calls_;
};

}  // namespace

std::unique_ptr<AnswerEncoder> make_chat_encoder(AnswerHead head, std::set<std::string> custom) {
  return std::make_unique<ChatEncoder>(std::move(head), std::move(custom));
}

}  // namespace tandem::protocol::openai
