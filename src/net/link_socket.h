// TCP sockets for links: addresses, connecting with a deadline, listening.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace tandem::net {

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
