// A bare TCP client for tests: sends any bytes, well formed or not.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>

namespace tandem::net {

class RawSocket {
 public:
  /// Connects to a port of 127.0.0.1. A small receive buffer makes a slow reader felt early.
  explicit RawSocket(uint16_t port, int receive_bytes = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_bytes > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;
  ~RawSocket() { close(); }

  bool is_connected() const { return connected_; }

  /// False when the peer has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  void end_sending() { ::shutdown(fd_, SHUT_WR); }

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  /// Reads until `text` has come, the peer closes, or time is up. Returns all read since the last
  /// call.
  std::string read_until(std::string_view text,
                         std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    std::string seen;
    while (text.empty() || seen.find(text) == std::string::npos) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
      if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) break;
      char bytes[4096];
      const ssize_t count = ::recv(fd_, bytes, sizeof bytes, 0);
      closed_ = count <= 0;
      if (closed_) break;
      seen.append(bytes, static_cast<size_t>(count));
    }
    return seen;
  }

  /// Reads until the peer closes.
  std::string read_all(std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    return read_until({}, limit);
  }

  /// The last read ended because the peer closed.
  bool is_closed() const { return closed_; }

 private:
  int fd_;
  bool connected_ = false;
  bool closed_ = false;
};

}  // namespace tandem::net
