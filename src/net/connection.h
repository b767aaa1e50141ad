// One client's connection: reads requests one after another and sends their replies.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/exchange.h"
#include "net/guard.h"
#include "net/router.h"
#include "net/server.h"

namespace tandem::net {

/// What all connections of a server share. Outlives them.
struct ServerState {
  ServerLimits limits;
  Router router;
  Guard guard;
  std::function<void(std::function<void()>)> run_handler;  // on a worker thread
  std::atomic<bool> draining = false;
  std::atomic<size_t> body_bytes = 0;
};

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  /// The socket's executor is a strand, on which all of this runs.
  /// `io` is what the executor runs on: a reply may outlive the server for a moment.
  Connection(boost::asio::ip::tcp::socket socket, ServerState& state, std::shared_ptr<void> io);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() = default;

  /// Serves until the connection ends. `self` keeps it alive.
  static boost::asio::awaitable<void> run(std::shared_ptr<Connection> self);

  /// Any thread: ends the connection if no request is running.
  void drain();
  /// Any thread: cuts the connection, whatever is running.
  void cut();

 private:
  template <class T>
  using Awaitable = boost::asio::awaitable<T>;
  struct Incoming;

  Awaitable<bool> wait_for_request();
  Awaitable<bool> serve_one();
  Awaitable<std::optional<Response>> read_head(Incoming& incoming);
  Awaitable<std::optional<Response>> read_body(Incoming& incoming);
  std::optional<Response> admit(Incoming& incoming);
  void dispatch(std::shared_ptr<Incoming> incoming, const std::shared_ptr<Exchange>& exchange);
  Awaitable<void> send_reply(std::shared_ptr<Exchange> exchange);
  Awaitable<bool> write_all(std::string bytes);
  Awaitable<void> stop_watching();
  Awaitable<void> linger();
  void watch_peer(std::shared_ptr<Exchange> exchange);
  void arm(std::chrono::milliseconds limit);
  void disarm();
  void wake();
  std::shared_ptr<Exchange> make_exchange(const Incoming& incoming, bool keep_alive);

  const std::shared_ptr<void> io_;  // shared with the server; goes after the socket
  boost::asio::ip::tcp::socket socket_;
  ServerState& state_;
  boost::beast::flat_buffer buffer_;
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer wakeup_;
  uint64_t armed_ = 0;  // counts arm() and disarm(), so that a late timer does nothing
  bool timed_out_ = false;
  bool awake_ = false;
  std::weak_ptr<Exchange> current_;
  bool watching_ = false;
  bool unwatch_ = false;
  bool peer_gone_ = false;
  bool busy_ = false;
  bool cut_ = false;
  bool unread_body_ = false;
  std::string peer_;
};

}  // namespace tandem::net
