// The way back to a client: one whole response, or a stream.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "net/request.h"

namespace tandem::net {

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
};

/// A response whose body is JSON.
Response json_response(int status, std::string body);

/// An error in the shape of the OpenAI wire, for faults found before any protocol is reached.
Response fault(int status, const std::string& code, const std::string& message);

/// The type the OpenAI wire gives errors of this status.
const char* fault_type(int status);

/// Answers one request. Any thread; calls of one reply in the order they should arrive. Nothing
/// here blocks: bytes wait in a bounded queue for the client. Dropping a reply that was not ended
/// sends 500, or cuts the stream.
class Reply {
 public:
  virtual ~Reply() = default;

  /// Sends a whole response and ends the reply.
  virtual void send(Response response) = 0;

  /// Sends status and headers; the body follows in pieces.
  virtual void start(int status, Headers headers) = 0;

  /// Queues a piece of the body. False, and the connection is cut, when the client is gone or more
  /// than the limit is waiting for it.
  virtual bool write(std::string piece) = 0;

  /// Ends a stream.
  virtual void finish() = 0;

  /// Calls back once, from an I/O thread, when the client has gone or is too slow. At once, from
  /// the calling thread, when that has happened already. Not after the reply was ended.
  virtual void on_closed(std::function<void()> callback) = 0;

  /// Whenever a started stream had nothing to send for `period`, sends what `text` gives. `text`
  /// is called from an I/O thread.
  virtual void keep_alive(std::chrono::milliseconds period, std::function<std::string()> text) = 0;
};

}  // namespace tandem::net
