// LinkListener: accepts links from whoever holds the secret.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/link.h"

namespace tandem::net {

struct LinkListenerOptions {
  LinkOptions link = {};
  /// A peer that has not proved itself by then is dropped.
  std::chrono::milliseconds handshake_timeout{3000};
  /// Handshakes under way at once; one more drops the oldest.
  size_t max_handshakes = 64;
};

/// Owns one thread, which runs all handshakes side by side: a slow or hostile peer delays no other.
/// Destroying it closes the port; links made live on.
class LinkListener {
 public:
  /// Receives each authenticated link, not yet started. On the listener's thread.
  using OnLink = std::function<void(std::unique_ptr<Link>)>;

  virtual ~LinkListener() = default;  // not from on_link

  /// "host:port" with the port that was really taken.
  virtual const std::string& address() const = 0;
  virtual uint16_t port() const = 0;
  /// From now on only holders of this secret get in; handshakes under way are dropped. An empty one
  /// lets nobody in: peers wait, unanswered, until there is a secret. Any thread. Error: kInvalid.
  virtual Status set_secret(std::span<const std::byte> secret) = 0;
  /// Peers refused so far: wrong secret, garbage, too slow.
  virtual uint64_t refused() const = 0;
};

/// Listens on "host:port"; port 0 takes a free one. An empty secret as in set_secret(). Errors:
/// kInvalid, kIo (address in use, …).
Result<std::unique_ptr<LinkListener>> listen_links(const std::string& address,
                                                   const LinkListenerOptions& options,
                                                   LinkListener::OnLink on_link);

}  // namespace tandem::net
