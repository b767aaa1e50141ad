#include "protocol/openai/chat_encoder.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "net/sse.h"

namespace tandem::protocol::openai {
namespace {

Json encode_token(const chat::TokenText& token) {
  Json bytes = Json::array();
  for (const char c : token.bytes) bytes.push_back(static_cast<unsigned char>(c));
  Json out;
  out["token"] = lossy_utf8(token.bytes);
  out["logprob"] = finite_logprob(token.logprob);
  out["bytes"] = std::move(bytes);
  return out;
}

Json encode_logprobs(const std::vector<chat::LogprobEntry>& entries) {
  Json content = Json::array();
  for (const chat::LogprobEntry& entry : entries) {
    Json out = encode_token(entry.token);
    out["top_logprobs"] = Json::array();
    for (const chat::TokenText& top : entry.top) out["top_logprobs"].push_back(encode_token(top));
    content.push_back(std::move(out));
  }
  return Json{{"content", std::move(content)}, {"refusal", nullptr}};
}

class ChatEncoder final : public AnswerEncoder {
 public:
  explicit ChatEncoder(AnswerHead head) : head_(std::move(head)) {
    chunk_start_ = dump(encode_head(head_, kChunk));
    chunk_start_.back() = ',';
    chunk_end_ = head_.include_usage ? "],\"usage\":null}" : "]}";
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

  std::string end(uint32_t choice, const chat::End& end) override {
    return open_choice(choice) + chunk(choice, "", "null", fmt::format("\"{}\"", name(end.reason)));
  }

  std::string close(const chat::Usage& total) override {
    return encode_close(head_, kChunk, total);
  }

  std::string whole(const std::vector<Answer>& answers, const chat::Usage& total) override {
    Json out = encode_head(head_, "chat.completion");
    out["choices"] = Json::array();
    for (size_t i = 0; i < answers.size(); ++i) {
      const Answer& answer = answers[i];
      Json message;
      message["role"] = "assistant";
      message["content"] = answer.text;
      message["refusal"] = nullptr;
      if (!answer.thinking.empty()) {
        message["reasoning"] = answer.thinking;
        message["reasoning_content"] = answer.thinking;
      }
      Json choice;
      choice["index"] = i;
      choice["message"] = std::move(message);
      choice["logprobs"] = head_.logprobs ? encode_logprobs(answer.logprobs) : Json(nullptr);
      choice["finish_reason"] = name(answer.end.reason);
      out["choices"].push_back(std::move(choice));
    }
    out["usage"] = encode_usage(total);
    return dump(out);
  }

 private:
  /// The role comes first, once a choice.
  std::string open_choice(uint32_t choice) {
    if (!opened_.insert(choice).second) return {};
    return chunk(choice, R"("role":"assistant","content":"")", "null", "null");
  }

  std::string chunk(uint32_t choice,
                    std::string_view delta,
                    std::string_view logprobs,
                    std::string_view finish) const {
    return net::encode_sse(fmt::format(
        R"({}"choices":[{{"index":{},"delta":{{{}}},"logprobs":{},"finish_reason":{}}}{})",
        chunk_start_, choice, delta, logprobs, finish, chunk_end_));
  }

  static constexpr const char* kChunk = "chat.completion.chunk";

  const AnswerHead head_;
  std::string chunk_start_;
  std::string chunk_end_;
  std::set<uint32_t> opened_;
};

}  // namespace

std::unique_ptr<AnswerEncoder> make_chat_encoder(AnswerHead head) {
  return std::make_unique<ChatEncoder>(std::move(head));
}

}  // namespace tandem::protocol::openai
