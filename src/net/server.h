// An HTTP/1.1 server with bounds on everything a client can make large, long or slow.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/guard.h"
#include "net/router.h"

namespace tandem::net {

struct ServerLimits {
  size_t header_bytes = 64 * 1024;
  size_t body_bytes = 32UL << 20;
  size_t all_bodies_bytes = 512UL << 20;  // of all requests being received or answered
  size_t queue_bytes = 1UL << 20;         // of one stream, waiting for its client
  size_t connections = 512;
  std::chrono::milliseconds idle{75'000};    // between requests
  std::chrono::milliseconds header{15'000};  // from a request's first byte to its last header
  std::chrono::milliseconds body{120'000};
  std::chrono::milliseconds stall{30'000};  // for which a client takes no byte of its answer
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0: any free one
  std::vector<std::string> keys;
  std::vector<std::string> allowed_origins;
  bool allow_open = false;  // listen beyond loopback without a key
  size_t io_threads = 1;
  size_t worker_threads = 4;  // that run handlers
  ServerLimits limits;
};

class Server {
 public:
  /// Listens and serves. Errors: kForbidden (beyond loopback without a key), kInvalid (no such
  /// address), kIo (cannot listen).
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Router router);

  /// Whether start() could listen now, with its errors; for callers with long work before it.
  static Status can_listen(const ServerOptions& options);

  /// Stops at once, as stop(0) does.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const;
  /// Such as "http://127.0.0.1:8080".
  std::string url() const;
  size_t connections() const;

  /// Takes no new connections, closes idle ones, lets running requests end for up to `drain`, then
  /// cuts them. Returns when every thread has ended. Not from a handler.
  void stop(std::chrono::milliseconds drain);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::net
