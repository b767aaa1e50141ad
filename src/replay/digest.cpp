#include "replay/digest.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace tandem::replay {
namespace {

EVP_MD_CTX* in(void* context) { return static_cast<EVP_MD_CTX*>(context); }

}  // namespace

void Digest::Free::operator()(void* context) const { EVP_MD_CTX_free(in(context)); }

Digest::Digest() : context_(EVP_MD_CTX_new()) {
  const bool begun = context_ && EVP_DigestInit_ex(in(context_.get()), EVP_sha256(), nullptr) == 1;
  TANDEM_CHECK(begun, "SHA-256 cannot be had from the crypto library");
}

Digest& Digest::add(std::string_view bytes) {
  EVP_DigestUpdate(in(context_.get()), bytes.data(), bytes.size());
  return *this;
}

Digest& Digest::add_field(std::string_view bytes) {
  std::string size;
  for (uint64_t rest = bytes.size(), i = 0; i < 8; ++i, rest >>= 8) {
    size.push_back(static_cast<char>(rest & 0xFF));
  }
  return add(size).add(bytes);
}

Digest& Digest::add_field(const Value& value) {
  return add_field({reinterpret_cast<const char*>(value.data()), value.size()});
}

Digest::Value Digest::value() const {
  const Digest copy;
  Value out{};
  unsigned int size = 0;
  EVP_MD_CTX_copy_ex(in(copy.context_.get()), in(context_.get()));
  EVP_DigestFinal_ex(in(copy.context_.get()), out.data(), &size);
  return out;
}

std::string hex_of(const Digest::Value& value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const uint8_t byte : value) {
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

}  // namespace tandem::replay
