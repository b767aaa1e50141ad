// A small blocking HTTP client for commands and tests, with event streams.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"
#include "net/reply.h"
#include "net/sse.h"

namespace tandem::net {

struct ClientOptions {
  std::string key;  // sent as a bearer token; empty: none
  std::chrono::milliseconds connect{5'000};
  std::chrono::milliseconds idle{120'000};  // without a byte
  std::function<bool()> cancelled;          // asked several times a second; may be empty
};

/// Talks to one server, one request at a time, on a connection of its own for each. Any thread.
class Client {
 public:
  /// `url` is http://host[:port][/prefix].
  static Result<Client> make(const std::string& url, ClientOptions options = {});

  /// A whole response, whatever its status. Errors: kPeerLost (no connection, or it broke),
  /// kDeadline, kCancelled, kCorrupt (not HTTP).
  Result<Response> get(const std::string& path) const;
  Result<Response> post(const std::string& path, std::string body) const;
  Result<Response> erase(const std::string& path) const;  // DELETE

  /// Posts and gives each event as it comes; `event` returns whether to go on. The response's body
  /// is empty when it was an event stream, and whole otherwise (an error, most likely).
  Result<Response> stream(const std::string& path,
                          std::string body,
                          const std::function<bool(const SseEvent&)>& event) const;

 private:
  Client() = default;
  Result<Response> request(const std::string& method,
                           const std::string& path,
                           std::string body,
                           const std::function<bool(const SseEvent&)>& event) const;

  std::string host_;
  std::string port_;
  std::string prefix_;
  ClientOptions options_;
};

}  // namespace tandem::net
