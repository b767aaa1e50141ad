#include "comm/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/sha.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/host_port.h"

namespace tandem::comm {
namespace {

constexpr int kBacklog = 64;

void set_flags(int fd) {
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

const sockaddr* raw(const Address& address) {
  return reinterpret_cast<const sockaddr*>(address.bytes.data());
}

socklen_t length(const Address& address) { return static_cast<socklen_t>(address.bytes.size()); }

std::string hex_digest(const std::string& text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  std::string hex;
  for (size_t i = 0; i < 16; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

#if defined(__APPLE__)
// A name in the user's own folder stays behind when its owner dies: nobody answers there.
void reclaim(const Address& address) {
  Fd probe(socket(address.family, SOCK_STREAM, 0));
  if (address.family != AF_UNIX || connect(probe.get(), raw(address), length(address)) == 0) return;
  if (errno == ECONNREFUSED) unlink(reinterpret_cast<const sockaddr_un*>(raw(address))->sun_path);
}
#else
void reclaim(const Address& /*address*/) {}  // abstract names die with their owner
#endif

}  // namespace

Error io_error(const std::string& what) {
  return {.code = ErrorCode::kIo,
          .message = fmt::format("[comm] {}: {}", what, std::generic_category().message(errno))};
}

Result<Address> tcp_address(const std::string& text) {
  const auto parsed = parse_host_port(text);
  if (!parsed) return Error{ErrorCode::kInvalid, "[comm] " + parsed.error().message};
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failure =
      getaddrinfo(parsed->host.c_str(), std::to_string(parsed->port).c_str(), &hints, &found);
  if (failure != 0) {
    return Error{
        .code = ErrorCode::kInvalid,
        .message = fmt::format("[comm] no address \"{}\": {}", text, gai_strerror(failure))};
  }
  const auto* begin = reinterpret_cast<const std::byte*>(found->ai_addr);
  Address address{.bytes = {begin, begin + found->ai_addrlen}, .family = found->ai_family};
  freeaddrinfo(found);
  return address;
}

Address local_address(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string file = "tandem-" + hex_digest(name);
#if defined(__APPLE__)
  char folder[sizeof address.sun_path] = "/tmp/";
  confstr(_CS_DARWIN_USER_TEMP_DIR, folder, sizeof folder);
  const std::string path = folder + file;
  const size_t used = std::min(path.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path, path.data(), used);
  const size_t bytes = sizeof address;
#else
  const size_t used = file.size();
  std::memcpy(address.sun_path + 1, file.data(), used);
  const size_t bytes = offsetof(sockaddr_un, sun_path) + 1 + used;
#endif
  const auto* begin = reinterpret_cast<const std::byte*>(&address);
  return {.bytes = {begin, begin + bytes}, .family = AF_UNIX};
}

Result<Fd> listen_on(const Address& address) {
  Fd listener(socket(address.family, SOCK_STREAM, 0));
  if (!listener) return io_error("cannot make a socket");
  set_flags(listener.get());
  const int on = 1;
  if (address.family != AF_UNIX) {
    setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  reclaim(address);
  if (bind(listener.get(), raw(address), length(address)) != 0) return io_error("cannot bind");
  if (listen(listener.get(), kBacklog) != 0) return io_error("cannot listen");
  return listener;
}

Result<Fd> reserve(const Address& address) {
  Fd holder(socket(address.family, SOCK_STREAM, 0));
  if (!holder) return io_error("cannot make a socket");
  set_flags(holder.get());
  const int on = 1;
  for (const int option : {SO_REUSEADDR, SO_REUSEPORT})
    setsockopt(holder.get(), SOL_SOCKET, option, &on, sizeof on);
  if (bind(holder.get(), raw(address), length(address)) != 0) return io_error("cannot bind");
  return holder;
}

uint16_t local_port(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  const in_port_t port = address.ss_family == AF_INET6
                             ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                             : reinterpret_cast<sockaddr_in&>(address).sin_port;
  return ntohs(port);
}

Result<Fd> dial(const Address& address) {
  Fd socket_fd(socket(address.family, SOCK_STREAM, 0));
  if (!socket_fd) return io_error("cannot make a socket");
  set_flags(socket_fd.get());
  tune(socket_fd);
  if (connect(socket_fd.get(), raw(address), length(address)) != 0 && errno != EINPROGRESS) {
    return io_error("cannot connect");
  }
  return socket_fd;
}

int dial_error(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

Fd accept_from(const Fd& listener) {
  Fd socket(accept(listener.get(), nullptr, nullptr));
  if (!socket) return socket;
  set_flags(socket.get());
  tune(socket);
  return socket;
}

void tune(const Fd& socket) {
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // no effect on local ones
#if defined(SO_NOSIGPIPE)
  setsockopt(socket.get(), SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
}

Result<std::pair<Fd, Fd>> socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return io_error("cannot make a socket pair");
  std::pair<Fd, Fd> pair{ends[0], ends[1]};
  for (const Fd* end : {&pair.first, &pair.second}) {
    set_flags(end->get());
    tune(*end);
  }
  return pair;
}

Status send_fds(const Fd& socket, std::span<const int> fds) {
  std::byte note{1};
  iovec part{.iov_base = &note, .iov_len = 1};
  std::vector<std::byte> control(CMSG_SPACE(fds.size_bytes()));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = static_cast<socklen_t>(control.size());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = static_cast<socklen_t>(CMSG_LEN(fds.size_bytes()));
  std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  if (sendmsg(socket.get(), &message, kNoSignal) != 1) return io_error("cannot pass memory");
  return {};
}

Result<std::vector<Fd>> recv_fds(const Fd& socket, size_t count, TimePoint until) {
  std::byte note{};
  iovec part{.iov_base = &note, .iov_len = 1};
  std::vector<std::byte> control(CMSG_SPACE(count * sizeof(int)));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = static_cast<socklen_t>(control.size());
  ssize_t got = -1;
  while ((got = recvmsg(socket.get(), &message, 0)) < 0 && errno == EAGAIN) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock().now());
    pollfd wait{.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) == 0) {
      return Error{.code = ErrorCode::kDeadline,
                   .message = "[comm] rank 0 still waits for other ranks of this host"};
    }
  }
  std::vector<Fd> fds;
  const cmsghdr* header = got == 1 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    const size_t passed = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < passed; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      fcntl(fd, F_SETFD, FD_CLOEXEC);
      fds.emplace_back(fd);
    }
  }
  if (fds.size() != count) {
    return Error{.code = ErrorCode::kPeerLost,
                 .message = "[comm] rank 0 went away before it passed the shared memory"};
  }
  return fds;
}

}  // namespace tandem::comm
