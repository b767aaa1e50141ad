#include "comm/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/socket.h>

#include <cerrno>

namespace tandem::comm {

Proof prove(std::span<const std::byte> secret, Side side, const Hello& own, const Hello& other) {
  std::vector<unsigned char> text{static_cast<unsigned char>(side)};
  for (const Hello* hello : {&own, &other}) {
    const auto* begin = reinterpret_cast<const unsigned char*>(hello);
    text.insert(text.end(), begin, begin + sizeof(Hello));
  }
  Proof proof;
  unsigned int length = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), text.data(), text.size(),
       reinterpret_cast<unsigned char*>(proof.data()), &length);
  TANDEM_CHECK(length == proof.size());
  return proof;
}

Hello with_nonce(Hello hello) {
  const int ok = RAND_bytes(reinterpret_cast<unsigned char*>(hello.nonce.data()),
                            static_cast<int>(hello.nonce.size()));
  TANDEM_CHECK(ok == 1, "no randomness");
  return hello;
}

Status Handshake::send(std::span<const std::byte> bytes) {
  // A fresh socket's buffer holds these few bytes: a short write means that the peer is gone.
  const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), kNoSignal);
  if (sent == static_cast<ssize_t>(bytes.size())) return {};
  return Error{.code = ErrorCode::kPeerLost, .message = "closed the connection"};
}

Status Handshake::begin() { return send(std::as_bytes(std::span(&own_, 1))); }

Status Handshake::judge() const {
  const Side other = side_ == Side::kDialer ? Side::kAcceptor : Side::kDialer;
  const Proof expected = prove(secret_, other, peer_, own_);
  if (CRYPTO_memcmp(expected.data(), proof_.data(), proof_.size()) != 0) {
    return Error{.code = ErrorCode::kUnauthorized, .message = "does not know the secret"};
  }
  if (peer_.epoch != own_.epoch || peer_.size != own_.size || peer_.kind != own_.kind) {
    return Error{.code = ErrorCode::kConflict,
                 .message = fmt::format("is of epoch {} with {} ranks, expected epoch {} with {}",
                                        peer_.epoch, peer_.size, own_.epoch, own_.size)};
  }
  return {};
}

Result<Handshake::State> Handshake::step() {
  while (true) {
    const bool in_hello = received_ < sizeof(Hello);
    auto part = in_hello ? std::as_writable_bytes(std::span(&peer_, 1)).subspan(received_)
                         : std::span<std::byte>(proof_).subspan(received_ - sizeof(Hello));
    const ssize_t got = recv(socket_.get(), part.data(), part.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return State::kPending;
    if (got <= 0) return Error{.code = ErrorCode::kPeerLost, .message = "closed the connection"};
    received_ += static_cast<size_t>(got);
    if (in_hello && received_ == sizeof(Hello)) {
      if (peer_.magic != Hello::kMagic || peer_.version != Hello::kVersion) {
        return Error{.code = ErrorCode::kUnauthorized, .message = "speaks another protocol"};
      }
      const Proof ours = prove(secret_, side_, own_, peer_);
      if (auto status = send(ours); !status) return status.error();
    }
    if (received_ == sizeof(Hello) + sizeof(Proof)) {
      if (auto status = judge(); !status) return status.error();
      return State::kDone;
    }
  }
}

}  // namespace tandem::comm
