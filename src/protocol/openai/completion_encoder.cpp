#include "protocol/openai/completion_encoder.h"

#include <map>

#include "net/sse.h"

namespace tandem::protocol::openai {
namespace {

size_t count_characters(const std::string& bytes) {
  size_t count = 0;
  for (const char c : bytes) count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return count;
}

/// The wire's older shape: parallel lists, offsets in characters of the text.
Json encode_logprobs(const std::vector<chat::LogprobEntry>& entries, size_t& offset) {
  Json tokens = Json::array();
  Json logprobs = Json::array();
  Json tops = Json::array();
  Json offsets = Json::array();
  for (const chat::LogprobEntry& entry : entries) {
    tokens.push_back(lossy_utf8(entry.token.bytes));
    logprobs.push_back(finite_logprob(entry.token.logprob));
    offsets.push_back(offset);
    offset += count_characters(entry.token.bytes);
    Json top = Json::object();
    for (const chat::TokenText& token : entry.top) {
      const std::string text = lossy_utf8(token.bytes);
      if (!top.contains(text)) top[text] = finite_logprob(token.logprob);
    }
    tops.push_back(std::move(top));
  }
  Json out;
  out["tokens"] = std::move(tokens);
  out["token_logprobs"] = std::move(logprobs);
  out["top_logprobs"] = std::move(tops);
  out["text_offset"] = std::move(offsets);
  return out;
}

class CompletionEncoder final : public AnswerEncoder {
 public:
  CompletionEncoder(AnswerHead head, std::string echo)
      : head_(std::move(head)), echo_(std::move(echo)) {}

  std::string delta(uint32_t choice, const chat::Delta& delta) override {
    std::string out = open_choice(choice);
    if (delta.text.empty() && delta.logprobs.empty()) return out;
    const Json logprobs =
        head_.logprobs ? encode_logprobs(delta.logprobs, offsets_[choice]) : Json(nullptr);
    return out + chunk(choice, delta.text, logprobs, nullptr);
  }

  std::string end(uint32_t choice, const chat::End& end) override {
    return open_choice(choice) + chunk(choice, "", nullptr, name(end.reason));
  }

  std::string close(const chat::Usage& total) override {
    return encode_close(head_, kObject, total);
  }

  std::string whole(const std::vector<Answer>& answers, const chat::Usage& total) override {
    Json out = encode_head(head_, kObject);
    out["choices"] = Json::array();
    for (size_t i = 0; i < answers.size(); ++i) {
      size_t offset = count_characters(echo_);
      const Answer& answer = answers[i];
      out["choices"].push_back(
          encode_choice(i, echo_ + answer.joined(Block::Kind::kText),
                        head_.logprobs ? encode_logprobs(answer.logprobs, offset) : Json(nullptr),
                        name(answer.end.reason)));
    }
    out["usage"] = encode_usage(total);
    return dump(out);
  }

 private:
  static Json encode_choice(size_t index, const std::string& text, Json logprobs, Json finish) {
    Json out;
    out["index"] = index;
    out["text"] = text;
    out["logprobs"] = std::move(logprobs);
    out["finish_reason"] = std::move(finish);
    return out;
  }

  std::string open_choice(uint32_t choice) {
    if (!offsets_.emplace(choice, count_characters(echo_)).second || echo_.empty()) return {};
    return chunk(choice, echo_, nullptr, nullptr);
  }

  std::string chunk(uint32_t choice, const std::string& text, Json logprobs, Json finish) const {
    Json out = encode_head(head_, kObject);
    out["choices"] =
        Json::array({encode_choice(choice, text, std::move(logprobs), std::move(finish))});
    if (head_.include_usage) out["usage"] = nullptr;
    return net::encode_sse(dump(out));
  }

  static constexpr const char* kObject = "text_completion";

  const AnswerHead head_;
  const std::string echo_;
  std::map<uint32_t, size_t> offsets_;  // characters of each choice so far
};

}  // namespace

std::unique_ptr<AnswerEncoder> make_completion_encoder(AnswerHead head, std::string echo) {
  return std::make_unique<CompletionEncoder>(std::move(head), std::move(echo));
}

}  // namespace tandem::protocol::openai
