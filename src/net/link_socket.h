// TCP sockets for links: addresses, connecting with a deadline, listening.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/result.h"

namespace tandem::net {

/// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

struct HostPort {
  std::string host;
  uint16_t port = 0;
};

/// Splits "host:port" or "[v6]:port". Error: kInvalid.
Result<HostPort> parse_host_port(std::string_view address);

/// A connected, non-blocking socket without Nagle's delay. Errors: kInvalid, kUnavailable,
/// kDeadline, kCancelled.
Result<Fd> connect_tcp(const std::string& address,
                       TimePoint deadline,
                       const std::atomic<bool>* give_up = nullptr);

/// A non-blocking listening socket. Errors: kInvalid, kIo.
Result<Fd> listen_tcp(const std::string& address);

/// Makes an accepted or connected socket fit for links. Error: kIo.
Status prepare_socket(int fd);

/// "address:port" of the socket's other end, or of its own.
std::string peer_address(int fd);
std::string local_address(int fd);

/// Waits until poll() reports one of `events`; false when the deadline passed first, or `give_up`
/// became true.
bool wait_for(int fd, short events, TimePoint deadline, const std::atomic<bool>* give_up = nullptr);

/// What poll() takes: milliseconds from now, rounded up, at least 0.
int poll_timeout(TimePoint deadline);

/// A pipe that wakes a thread out of poll().
class WakePipe {
 public:
  WakePipe();
  int fd() const { return read_.get(); }
  void wake();   // any thread
  void clear();  // the woken thread

 private:
  Fd read_;
  Fd write_;
};

}  // namespace tandem::net
