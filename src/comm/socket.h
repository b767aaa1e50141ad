// Sockets as values: listening, dialling, passing descriptors.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace tandem::comm {

/// A socket address of any family.
struct Address {
  std::vector<std::byte> bytes;
  int family = 0;
};

/// "host:port" or "[v6]:port". Resolves names, which may take long: prefer numbers. Error:
/// kInvalid.
Result<Address> tcp_address(const std::string& text);

/// Where the ranks of one host meet. Never on disk on Linux (abstract); in the user's private
/// temporary folder on macOS.
Address local_address(const std::string& name);

/// Binds and listens, non-blocking and closed on exec. Port 0 takes a free one: see local_port().
Result<Fd> listen_on(const Address& address);
/// Binds and does not listen: connecting is refused, and a socket of this user that may reuse the
/// port (SO_REUSEADDR, SO_REUSEPORT) can listen there. For software that binds by itself.
Result<Fd> reserve(const Address& address);
uint16_t local_port(const Fd& socket);

/// Begins to connect; the socket becomes writable when it is done or has failed.
Result<Fd> dial(const Address& address);
/// Zero once a dialled socket is connected, else errno.
int dial_error(int socket);

/// A waiting connection, or an empty Fd when there is none.
Fd accept_from(const Fd& listener);

/// For send(): a closed peer is an error, not a SIGPIPE. Where there is no such flag, tune() sees
/// to it.
#if defined(MSG_NOSIGNAL)
inline constexpr int kNoSignal = MSG_NOSIGNAL;
#else
inline constexpr int kNoSignal = 0;
#endif

/// No delays, no SIGPIPE.
void tune(const Fd& socket);

/// Both ends of a local stream.
Result<std::pair<Fd, Fd>> socket_pair();

/// Passes descriptors over a local socket.
Status send_fds(const Fd& socket, std::span<const int> fds);
Result<std::vector<Fd>> recv_fds(const Fd& socket, size_t count, TimePoint until);

/// errno as a sentence.
Error io_error(const std::string& what);

}  // namespace tandem::comm
