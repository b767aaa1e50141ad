// One request's reply as a connection sees it: bytes to send, and whether more may come.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "net/reply.h"

namespace tandem::net {

/// A Reply that queues bytes for a connection. The connection takes them; any other thread puts
/// them. Shared between the connection and whoever answers, since either may be done first.
class Exchange final : public Reply {
 public:
  struct Shape {
    bool http_1_1 = true;
    bool keep_alive = true;  // what the client asked for
    bool head = false;       // the body is left out
    size_t queue_limit_bytes = 1 << 20;
    Headers extra;  // added to every response
  };

  /// `wake` tells the connection that there is something to do. Any thread; must not block.
  Exchange(Shape shape, std::function<void()> wake);

  void send(Response response) override;
  void start(int status, Headers headers) override;
  bool write(std::string piece) override;
  void finish() override;
  void on_closed(std::function<void()> callback) override;
  void keep_alive(std::chrono::milliseconds period, std::function<std::string()> text) override;

  // For the connection.

  struct Batch {
    std::string bytes;
    bool is_last = false;
    bool cut = false;  // the stream broke off or the client was too slow: close the connection
  };

  /// All that waits, framed.
  Batch take();

  /// After how long without bytes beat() is due; none when the reply is not an open stream.
  std::optional<std::chrono::milliseconds> beat_period() const;
  void beat();

  /// The client went away: runs the callbacks. Later bytes may still be taken.
  void close();

  /// The connection has gone: later bytes are dropped.
  void abandon();

  /// The connection may carry a further request.
  bool keeps_alive() const;
  bool is_cut() const;

 private:
  void release();
  void put_head(int status, const Headers& headers, std::optional<size_t> length);
  bool put(std::string_view piece);

  const Shape shape_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::string queue_;  // framed bytes that the connection has not taken yet
  bool started_ = false;
  bool chunked_ = false;
  bool ended_ = false;
  bool closed_ = false;
  bool keep_ = false;
  bool cut_ = false;  // too slow a client, or a stream given up
  std::vector<std::function<void()>> callbacks_;
  std::chrono::milliseconds period_{0};
  std::function<std::string()> beat_text_;
};

/// Gives a handler its Reply and ends the exchange when the handler lets go of it unended.
std::shared_ptr<Reply> make_handle(std::shared_ptr<Exchange> exchange);

}  // namespace tandem::net
