#include "net/link_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/host_port.h"

namespace tandem::net {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<AddressList> resolve(const std::string& address, bool passive) {
  const auto parsed = parse_host_port(address);
  if (!parsed) return parsed.error();
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int rc =
      getaddrinfo(parsed->host.c_str(), std::to_string(parsed->port).c_str(), &hints, &found);
  if (rc != 0) {
    return Error{ErrorCode::kInvalid,
                 fmt::format("cannot resolve {}: {}", address, gai_strerror(rc))};
  }
  return AddressList(found, &freeaddrinfo);
}

bool set_nonblocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
         fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

/// Connects one resolved address; errno in the result.
int connect_one(int fd, const addrinfo& to, TimePoint deadline, const std::atomic<bool>* give_up) {
  if (::connect(fd, to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  if (!wait_for(fd, POLLOUT, deadline, give_up)) {
    return give_up && *give_up ? ECANCELED : ETIMEDOUT;
  }
  int problem = 0;
  socklen_t size = sizeof problem;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size) != 0) return errno;
  return problem;
}

std::string format_address(const sockaddr_storage& storage, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  const int rc =
      getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, host.data(), host.size(),
                  port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  if (rc != 0) return "unknown";
  return storage.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host.data(), port.data())
                                       : fmt::format("{}:{}", host.data(), port.data());
}

}  // namespace

Result<Fd> connect_tcp(const std::string& address,
                       TimePoint deadline,
                       const std::atomic<bool>* give_up) {
  const auto list = resolve(address, false);
  if (!list) return list.error();
  int problem = 0;
  for (const addrinfo* to = list->get(); to; to = to->ai_next) {
    Fd fd(::socket(to->ai_family, SOCK_STREAM, 0));
    if (!fd || !set_nonblocking(fd.get())) {
      problem = errno;
      continue;
    }
    problem = connect_one(fd.get(), *to, deadline, give_up);
    if (problem == 0) {
      if (const Status ready = prepare_socket(fd.get()); !ready) return ready.error();
      return fd;
    }
  }
  const ErrorCode code = problem == ETIMEDOUT   ? ErrorCode::kDeadline
                         : problem == ECANCELED ? ErrorCode::kCancelled
                                                : ErrorCode::kUnavailable;
  return Error{code, fmt::format("cannot connect to {}: {}", address, std::strerror(problem))};
}

Result<Fd> listen_tcp(const std::string& address) {
  const auto list = resolve(address, true);
  if (!list) return list.error();
  int problem = 0;
  for (const addrinfo* at = list->get(); at; at = at->ai_next) {
    Fd fd(::socket(at->ai_family, SOCK_STREAM, 0));
    const int on = 1;
    if (fd && set_nonblocking(fd.get()) &&
        setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::bind(fd.get(), at->ai_addr, at->ai_addrlen) == 0 && ::listen(fd.get(), 64) == 0) {
      return fd;
    }
    problem = errno;
  }
  return Error{ErrorCode::kIo,
               fmt::format("cannot listen on {}: {}", address, std::strerror(problem))};
}

Status prepare_socket(int fd) {
  const int on = 1;
  if (set_nonblocking(fd) && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0) {
#ifdef SO_NOSIGPIPE
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    return {};
  }
  return Error{ErrorCode::kIo, fmt::format("cannot set up a socket: {}", std::strerror(errno))};
}

std::string peer_address(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "unknown";
  return format_address(storage, size);
}

std::string local_address(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "unknown";
  return format_address(storage, size);
}

bool wait_for(int fd, short events, TimePoint deadline, const std::atomic<bool>* give_up) {
  for (;;) {
    pollfd waiting{fd, events, 0};
    if (give_up && *give_up) return false;
    const int left = poll_timeout(deadline);
    const int rc = ::poll(&waiting, 1, give_up ? std::min(left, 20) : left);
    if (rc > 0) return true;
    if (rc == 0 && SteadyClock().now() >= deadline) return false;
    if (rc < 0 && errno != EINTR) return false;
  }
}

int poll_timeout(TimePoint deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock().now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1'000'000));
}

WakePipe::WakePipe() {
  int ends[2];
  TANDEM_CHECK(::pipe(ends) == 0, "no pipe: {}", std::strerror(errno));
  read_.reset(ends[0]);
  write_.reset(ends[1]);
  TANDEM_CHECK(set_nonblocking(ends[0]) && set_nonblocking(ends[1]));
}

void WakePipe::wake() {
  const char byte = 0;
  // A full pipe wakes as well.
  [[maybe_unused]] const ssize_t written = ::write(write_.get(), &byte, 1);
}

void WakePipe::clear() {
  std::array<char, 64> bytes;
  while (::read(read_.get(), bytes.data(), bytes.size()) > 0) {
  }
}

}  // namespace tandem::net
