#include "protocol/anthropic/signature.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

namespace tandem::protocol::anthropic {

std::string sign_thinking(std::string_view key, std::string_view thinking) {
  std::array<unsigned char, 32> digest{};
  unsigned int length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(thinking.data()), thinking.size(), digest.data(),
       &length);
  std::string out;
  for (const unsigned char byte : digest) out += fmt::format("{:02x}", byte);
  return out;
}

}  // namespace tandem::protocol::anthropic
