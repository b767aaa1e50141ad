#include "net/server.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/write.hpp>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/log.h"
#include "net/connection.h"

namespace tandem::net {
namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::chrono::seconds kCutLimit{5};

Result<tcp::endpoint> find_endpoint(asio::io_context& io, const ServerOptions& options) {
  error_code error;
  const auto address = asio::ip::make_address(options.host, error);
  if (!error) return tcp::endpoint(address, options.port);
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(options.host, std::to_string(options.port), error);
  if (error || found.empty()) {
    return Error{ErrorCode::kInvalid,
                 fmt::format("'{}' is no address of this machine", options.host), "host"};
  }
  for (const auto& entry : found) {
    if (entry.endpoint().address().is_v4()) return entry.endpoint();
  }
  return found.begin()->endpoint();
}

/// The address to listen on, if the options allow to.
Result<tcp::endpoint> allowed_endpoint(asio::io_context& io, const ServerOptions& options) {
  auto endpoint = find_endpoint(io, options);
  if (!endpoint) return endpoint;
  if (!endpoint->address().is_loopback() && options.keys.empty() && !options.allow_open) {
    return Error{ErrorCode::kForbidden,
                 fmt::format("listening on {} without an API key would open this server to the "
                             "network",
                             options.host),
                 "host"};
  }
  return endpoint;
}

Status open_acceptor(tcp::acceptor& acceptor,
                     const tcp::endpoint& endpoint,
                     const ServerOptions& options) {
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) return {};
  return Error{ErrorCode::kIo, fmt::format("cannot listen on {}:{}: {}", options.host, options.port,
                                           error.message())};
}

}  // namespace

class Server::Impl {
 public:
  Impl(const ServerOptions& options, Router router, bool loopback)
      : options_(options),
        state_{.limits = options.limits,
               .router = std::move(router),
               .guard = Guard({.keys = options.keys,
                               .allowed_origins = options.allowed_origins,
                               .loopback = loopback}),
               .run_handler = [this](std::function<void()> task) { post(std::move(task)); }},
        acceptor_(*io_),
        retry_(*io_),
        workers_(options.worker_threads) {}

  Status listen(const tcp::endpoint& endpoint) {
    if (Status opened = open_acceptor(acceptor_, endpoint, options_); !opened) return opened;
    port_ = acceptor_.local_endpoint().port();
    accept();
    for (size_t i = 0; i < options_.io_threads; ++i) {
      threads_.emplace_back([this] { io_->run(); });
    }
    return {};
  }

  void stop(std::chrono::milliseconds drain) {
    if (threads_.empty()) return;
    state_.draining = true;
    asio::post(*io_, [this] {
      error_code ignored;
      acceptor_.close(ignored);
      retry_.cancel();
    });
    each([](Connection& connection) { connection.drain(); });
    if (!wait_for_none(drain)) {
      each([](Connection& connection) { connection.cut(); });
      if (!wait_for_none(kCutLimit)) TANDEM_LOG(kWarn, "connections were left at the stop");
    }
    work_.reset();
    io_->stop();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    workers_.join();
    // What is still queued holds connections, which hold io_.
    io_->restart();
    io_->poll();
  }

  uint16_t port() const { return port_; }
  std::string url() const {
    const bool v6 = options_.host.find(':') != std::string::npos;
    const std::string host = v6 ? "[" + options_.host + "]" : options_.host;
    return fmt::format("http://{}:{}", host, port_);
  }
  size_t connections() const {
    const std::lock_guard lock(mutex_);
    return connections_.size();
  }

 private:
  void post(std::function<void()> task) { asio::post(workers_, std::move(task)); }

  void accept() {
    acceptor_.async_accept(asio::make_strand(*io_), [this](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted || state_.draining) return;
      if (error) return accept_later();
      serve(std::move(socket));
      accept();
    });
  }

  /// Out of descriptors, most likely.
  void accept_later() {
    retry_.expires_after(std::chrono::milliseconds(100));
    retry_.async_wait([this](error_code error) {
      if (!error) accept();
    });
  }

  void serve(tcp::socket socket) {
    if (connections() >= options_.limits.connections) return refuse(std::move(socket));
    const auto executor = socket.get_executor();
    auto connection = std::make_shared<Connection>(std::move(socket), state_, io_);
    {
      const std::lock_guard lock(mutex_);
      connections_.emplace(connection.get(), connection);
    }
    Connection* const key = connection.get();
    asio::co_spawn(executor, Connection::run(std::move(connection)),
                   [this, key](const std::exception_ptr& failure) {
                     if (failure) TANDEM_LOG(kError, "a connection ended by an exception");
                     forget(key);
                   });
  }

  /// One write into an empty socket buffer does not block; more is not owed.
  void refuse(tcp::socket socket) {
    Response full = fault(503, "too_many_connections", "this server has no room for a connection");
    full.headers.push_back({"Retry-After", "1"});
    Exchange exchange({.keep_alive = false, .extra = {}}, [] {});
    exchange.send(std::move(full));
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(exchange.take().bytes), ignored);
    socket.shutdown(tcp::socket::shutdown_send, ignored);
  }

  void forget(Connection* connection) {
    const std::lock_guard lock(mutex_);
    connections_.erase(connection);
    changed_.notify_all();
  }

  template <class F>
  void each(F act) {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, weak] : connections_) {
      if (const auto connection = weak.lock()) act(*connection);
    }
  }

  bool wait_for_none(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [this] { return connections_.empty(); });
  }

  const ServerOptions options_;
  ServerState state_;
  // Shared with connections, see there.
  const std::shared_ptr<asio::io_context> io_ = std::make_shared<asio::io_context>();
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_->get_executor()};
  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  asio::thread_pool workers_;
  std::vector<std::thread> threads_;
  uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Connection*, std::weak_ptr<Connection>> connections_;
};

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Router router) {
  asio::io_context io;
  const auto endpoint = allowed_endpoint(io, options);
  if (!endpoint) return endpoint.error();
  const bool loopback = endpoint->address().is_loopback();
  auto impl = std::make_unique<Impl>(options, std::move(router), loopback);
  if (const Status listening = impl->listen(*endpoint); !listening) return listening.error();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Status Server::can_listen(const ServerOptions& options) {
  asio::io_context io;
  const auto endpoint = allowed_endpoint(io, options);
  if (!endpoint) return endpoint.error();
  tcp::acceptor acceptor(io);
  return open_acceptor(acceptor, *endpoint, options);
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { impl_->stop(std::chrono::milliseconds(0)); }
uint16_t Server::port() const { return impl_->port(); }
std::string Server::url() const { return impl_->url(); }
size_t Server::connections() const { return impl_->connections(); }
void Server::stop(std::chrono::milliseconds drain) { impl_->stop(drain); }

}  // namespace tandem::net
