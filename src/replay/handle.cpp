#include "replay/handle.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "replay/digest.h"

namespace tandem::replay {
namespace {

constexpr std::string_view kPrefix = "tandem1.";

std::string proof(std::string_view key, std::string_view salt, std::string_view id) {
  const std::string said = std::string(salt) + '\0' + std::string(id);
  Digest::Value digest{};
  unsigned int length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(said.data()), said.size(), digest.data(), &length);
  return hex_of(digest);
}

}  // namespace

std::string seal(std::string_view key, std::string_view salt, std::string_view id) {
  return std::string(kPrefix) + std::string(id) + '.' + proof(key, salt, id);
}

std::optional<std::string> unseal(std::string_view key,
                                  std::string_view salt,
                                  std::string_view handle) {
  if (key.empty() || !handle.starts_with(kPrefix)) return std::nullopt;
  handle.remove_prefix(kPrefix.size());
  const size_t dot = handle.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view id = handle.substr(0, dot);
  const std::string_view given = handle.substr(dot + 1);
  const std::string right = proof(key, salt, id);
  const bool equal =
      given.size() == right.size() && CRYPTO_memcmp(given.data(), right.data(), right.size()) == 0;
  return equal ? std::optional(std::string(id)) : std::nullopt;
}

}  // namespace tandem::replay
