// Link: length-framed messages between two processes over TCP, authenticated and encrypted (TLS 1.3
// with a pre-shared key: whoever does not hold the secret gets nothing through).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tandem::net {

struct LinkOptions {
  /// Shared by both sides, at least 16 bytes; never logged.
  std::vector<std::byte> secret = {};
  /// The longest frame either side may send.
  size_t max_frame_bytes = size_t{64} << 20;
  /// Unsent bytes that may wait while the peer does not read; one whole frame always may.
  size_t max_queue_bytes = size_t{16} << 20;
  /// close() goes on sending what is queued for at most this long.
  std::chrono::milliseconds linger{500};
};

struct LinkHandlers {
  /// A frame has come; valid during the call. On the link's thread, in order.
  std::function<void(std::span<const std::byte>)> on_frame;
  /// Exactly once, last, on the link's thread. kPeerLost: the peer closed or the connection broke;
  /// kCorrupt: tampered bytes or a frame over the bound; kCancelled: close() was called here.
  std::function<void(Error)> on_closed = {};
};

/// One end of a link. Thread-safe but for start() and the destructor. Owns one thread, which sleeps
/// while nothing comes. SIGPIPE is never raised. A silent peer is not noticed here: beats are for
/// that.
class Link {
 public:
  virtual ~Link() = default;  // close(), then waits for the link's thread; not from a handler

  /// Once: frames that came earlier are delivered then.
  virtual void start(LinkHandlers handlers) = 0;

  /// Queues a frame, and writes at once what the connection takes; never waits for the peer.
  /// Errors: kBusy (max_queue_bytes wait already), kTooLarge, kPeerLost (closed).
  virtual Status send(std::span<const std::byte> frame) = 0;

  /// Sends what is queued (up to `linger`) and closes. Also from a handler. Before start() it
  /// closes at once.
  virtual void close() = 0;

  /// The other side's "address:port", for logs.
  virtual const std::string& peer() const = 0;
};

/// Connects and authenticates. address is "host:port" or "[v6]:port". Errors: kInvalid (address,
/// secret), kUnavailable (nobody listens), kUnauthorized (secrets differ, or not one of us),
/// kDeadline, kCancelled (`give_up` became true; it is looked at every 20 ms).
Result<std::unique_ptr<Link>> connect_link(const std::string& address,
                                           const LinkOptions& options,
                                           std::chrono::milliseconds timeout,
                                           const std::atomic<bool>* give_up = nullptr);

}  // namespace tandem::net
