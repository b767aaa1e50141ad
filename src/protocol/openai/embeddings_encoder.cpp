#include "protocol/openai/embeddings_encoder.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <iterator>
#include <string_view>

#include "protocol/json.h"

namespace tandem::protocol::openai {
namespace {

static_assert(std::endian::native == std::endian::little, "clients read little-endian floats");

void append_base64(const std::vector<float>& vector, std::string& out) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<unsigned char> bytes(vector.size() * sizeof(float));
  std::memcpy(bytes.data(), vector.data(), bytes.size());
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t left = std::min<size_t>(3, bytes.size() - at);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < left ? bytes[at + i] : 0U);
    for (size_t i = 0; i < 4; ++i) out += i <= left ? kDigits[bits >> (18 - 6 * i) & 63U] : '=';
  }
}

void append_numbers(const std::vector<float>& vector, std::string& out) {
  for (size_t i = 0; i < vector.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ",", vector[i]);
}

}  // namespace

std::string encode_embeddings(const chat::Vectors& vectors,
                              bool is_base64,
                              const std::string& model,
                              uint64_t prompt_tokens) {
  std::string out = R"({"object":"list","data":[)";
  for (size_t i = 0; i < vectors.size(); ++i) {
    fmt::format_to(std::back_inserter(out), R"({}{{"object":"embedding","index":{},"embedding":{})",
                   i == 0 ? "" : ",", i, is_base64 ? '"' : '[');
    is_base64 ? append_base64(vectors[i], out) : append_numbers(vectors[i], out);
    out += is_base64 ? "\"}" : "]}";
  }
  fmt::format_to(std::back_inserter(out),
                 R"(],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})",
                 dump(Json(model)), prompt_tokens, prompt_tokens);
  return out;
}

}  // namespace tandem::protocol::openai
