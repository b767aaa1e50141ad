// TlsSession: one side of TLS 1.3 with a pre-shared key over a non-blocking socket.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "net/link_socket.h"

namespace tandem::net {

/// Keys and rules that all sessions of one secret share.
class TlsContext {
 public:
  /// Error: kInvalid (secret too short).
  static Result<std::shared_ptr<TlsContext>> make(std::span<const std::byte> secret);

  SSL_CTX* get() const { return context_.get(); }
  const std::vector<uint8_t>& key() const { return key_; }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, &SSL_CTX_free};
  std::vector<uint8_t> key_;  // derived from the secret
};

/// Not thread-safe; never blocks, never raises SIGPIPE.
class TlsSession {
 public:
  enum class Side { kClient, kServer };
  enum class Progress { kDone, kWantsRead, kWantsWrite, kClosed, kFailed };
  struct Moved {
    Progress progress = Progress::kFailed;
    size_t bytes = 0;  // when kDone
  };

  /// Takes the socket over. `context` outlives the session by sharing.
  TlsSession(std::shared_ptr<TlsContext> context, Fd socket, Side side);

  /// One step of the handshake. kDone: the peer holds the secret.
  Progress handshake();
  Moved read(std::span<std::byte> into);
  Moved write(std::span<const std::byte> from);
  /// Tells the peer that nothing more comes, as far as the socket takes it at once.
  void shutdown();

  int fd() const { return socket_.get(); }
  /// What went wrong, for messages, after kFailed.
  const std::string& problem() const { return problem_; }

 private:
  Progress progress_of(int rc);

  std::shared_ptr<TlsContext> context_;
  Fd socket_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, &SSL_free};
  std::string problem_;
};

}  // namespace tandem::net
