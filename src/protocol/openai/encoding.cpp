#include "protocol/openai/encoding.h"

#include <cmath>

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

}  // namespace

Json encode_head(const AnswerHead& head, const char* object) {
  Json out;
  out["id"] = head.id;
  out["object"] = object;
  out["created"] = head.created;
  out["model"] = head.model;
  if (!head.fingerprint.empty()) out["system_fingerprint"] = head.fingerprint;
  return out;
}

Json encode_usage(const chat::Usage& usage) {
  Json out;
  out["prompt_tokens"] = usage.prompt_tokens;
  out["completion_tokens"] = usage.completion_tokens;
  out["total_tokens"] = uint64_t{usage.prompt_tokens} + usage.completion_tokens;
  out["prompt_tokens_details"] = Json{{"cached_tokens", usage.cached_tokens}};
  out["completion_tokens_details"] = Json{{"reasoning_tokens", usage.reasoning_tokens}};
  return out;
}

std::string encode_close(const AnswerHead& head, const char* object, const chat::Usage& total) {
  std::string out;
  if (head.include_usage) {
    Json last = encode_head(head, object);
    last["choices"] = Json::array();
    last["usage"] = encode_usage(total);
    out = net::encode_sse(dump(last));
  }
  return out + net::encode_sse("[DONE]");
}

Json encode_tokens(const std::vector<chat::LogprobEntry>& entries) {
  Json out = Json::array();
  for (const chat::LogprobEntry& entry : entries) {
    Json token = encode_token(entry.token);
    token["top_logprobs"] = Json::array();
    for (const chat::TokenText& top : entry.top) token["top_logprobs"].push_back(encode_token(top));
    out.push_back(std::move(token));
  }
  return out;
}

double finite_logprob(float logprob) {
  return std::isfinite(logprob) ? static_cast<double>(logprob) : -9999.0;
}

}  // namespace tandem::protocol::openai
