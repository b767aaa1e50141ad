#include "net/connection.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdlib>
#include <exception>
#include <typeinfo>
#include <utility>

#include "base/log.h"

namespace tandem::net {
namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr std::chrono::milliseconds kLinger{1000};
constexpr std::chrono::seconds kHandlerGrace{30};
constexpr size_t kReadBytes = 64 * 1024;
// Of the kernel, in front of ours; left alone it grows to megabytes that nobody counts.
constexpr int kSendBufferBytes = 256 * 1024;

auto with(error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

/// The answer to a request that could not be read; nothing when the client is not there to read it.
std::optional<Response> read_fault(error_code error, const ServerLimits& limits) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return fault(431, "headers_too_large",
                 fmt::format("the request's headers exceed {} bytes", limits.header_bytes));
  }
  if (error == http::error::body_limit) {
    return fault(413, "body_too_large",
                 fmt::format("the request's body exceeds {} bytes", limits.body_bytes));
  }
  if (error.category() == make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message) {
    return fault(400, "bad_request", "not an HTTP/1.1 request: " + error.message());
  }
  return std::nullopt;
}

/// What may go into the log of an exception: its text may quote the request.
std::string type_of(const std::exception& error) {
  const char* mangled = typeid(error).name();
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free);
  return plain ? plain.get() : mangled;
}

/// Refuses what two readers could understand differently, and bodies that would have to be
/// unpacked.
std::optional<Response> refuse_framing(const Request& request, bool modern) {
  const auto count = [&](std::string_view name) {
    return std::count_if(request.headers.begin(), request.headers.end(), [&](const Header& header) {
      return equals_ignoring_case(header.name, name);
    });
  };
  if (count("host") > 1 || (modern && count("host") == 0)) {
    return fault(400, "bad_request", "a request must have one Host header");
  }
  const std::string_view transfer = request.header("transfer-encoding");
  if (count("transfer-encoding") > 1 ||
      (!transfer.empty() && !equals_ignoring_case(transfer, "chunked"))) {
    return fault(501, "transfer_encoding", "the only transfer encoding known is chunked");
  }
  const std::string_view content = request.header("content-encoding");
  if (!content.empty() && !equals_ignoring_case(content, "identity")) {
    return fault(415, "content_encoding", "bodies are taken as they are, not compressed");
  }
  return std::nullopt;
}

}  // namespace

/// A request being read. Counts its body against the server's bound while it lives.
struct Connection::Incoming {
  explicit Incoming(ServerState& server) : state(&server) {}
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;
  ~Incoming() { state->body_bytes -= counted; }

  http::request_parser<http::string_body> parser;
  Request request;
  const Route* route = nullptr;
  bool has_known_end = true;  // else the next request may begin anywhere
  ServerState* state;
  size_t counted = 0;
};

Connection::Connection(asio::ip::tcp::socket socket, ServerState& state, std::shared_ptr<void> io)
    : io_(std::move(io)),
      socket_(std::move(socket)),
      state_(state),
      buffer_(state.limits.header_bytes + kReadBytes),
      deadline_(socket_.get_executor()),
      wakeup_(socket_.get_executor()) {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::send_buffer_size(kSendBufferBytes), ignored);
  const auto endpoint = socket_.remote_endpoint(ignored);
  if (!ignored) peer_ = endpoint.address().to_string();
}

void Connection::arm(std::chrono::milliseconds limit) {
  timed_out_ = false;
  const uint64_t mine = ++armed_;
  deadline_.expires_after(limit);
  deadline_.async_wait([self = shared_from_this(), mine](error_code error) {
    if (error || mine != self->armed_) return;
    self->timed_out_ = true;
    self->socket_.cancel(error);
  });
}

void Connection::disarm() {
  ++armed_;
  deadline_.cancel();
}

void Connection::wake() {
  awake_ = true;
  wakeup_.cancel();
  const auto exchange = current_.lock();
  if (!exchange || !exchange->is_cut()) return;
  error_code ignored;
  socket_.close(ignored);  // also ends a write that the client does not take
  exchange->close();
}

void Connection::drain() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (!self->busy_) self->cut();
  });
}

void Connection::cut() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    error_code ignored;
    self->cut_ = true;
    self->socket_.close(ignored);
    self->wake();
  });
}

Connection::Awaitable<void> Connection::run(std::shared_ptr<Connection> self) {
  while (co_await self->wait_for_request()) {
    self->busy_ = true;
    const bool again = co_await self->serve_one();
    self->busy_ = false;
    if (!again || self->state_.draining) break;
  }
  co_await self->linger();
}

Connection::Awaitable<bool> Connection::wait_for_request() {
  if (buffer_.size() > 0) co_return true;
  error_code error;
  arm(state_.limits.idle);
  const size_t count = co_await socket_.async_read_some(buffer_.prepare(kReadBytes), with(error));
  disarm();
  buffer_.commit(count);
  co_return !error;
}

Connection::Awaitable<std::optional<Response>> Connection::read_head(Incoming& incoming) {
  auto& parser = incoming.parser;
  parser.header_limit(static_cast<uint32_t>(state_.limits.header_bytes));
  parser.body_limit(state_.limits.body_bytes);
  error_code error;
  arm(state_.limits.header);
  co_await http::async_read_header(socket_, buffer_, parser, with(error));
  disarm();
  if (timed_out_) co_return fault(408, "header_timeout", "the request's headers took too long");
  if (error) {
    peer_gone_ = !read_fault(error, state_.limits);
    co_return read_fault(error, state_.limits).value_or(Response{});
  }
  const auto& message = parser.get();
  Request& request = incoming.request;
  request.method = std::string(message.method_string());
  const std::string_view target(message.target().data(), message.target().size());
  const size_t question = target.find('?');
  request.path = std::string(target.substr(0, question));
  if (question != std::string_view::npos) request.query = std::string(target.substr(question + 1));
  for (const auto& field : message) {
    request.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  }
  request.peer = peer_;
  co_return std::nullopt;
}

/// Everything that can be decided before the body is read.
std::optional<Response> Connection::admit(Incoming& incoming) {
  Request& request = incoming.request;
  Router::Match match = state_.router.match(request.method, request.path);
  const Access access = match.route ? match.route->access : Access::kKeyed;
  const bool modern = incoming.parser.get().version() >= 11;
  if (auto refusal = refuse_framing(request, modern)) {
    incoming.has_known_end = false;
    return refusal;
  }
  if (request.method == "OPTIONS") {
    return state_.guard.preflight(request,
                                  match.allow.empty() ? "OPTIONS" : match.allow + ", OPTIONS");
  }
  if (auto refusal = state_.guard.check(request, access)) return refusal;
  if (!match.route && match.allow.empty()) {
    return fault(404, "route_not_found", "there is nothing at this path");
  }
  if (!match.route) {
    Response refusal = fault(405, "method_not_allowed", "this path allows " + match.allow);
    refusal.headers.push_back({"Allow", match.allow + ", OPTIONS"});
    return refusal;
  }
  const std::string_view expect = request.header("expect");
  if (!expect.empty() && !equals_ignoring_case(expect, "100-continue")) {
    return fault(417, "expectation_failed", "the only expectation known is 100-continue");
  }
  incoming.route = match.route;
  request.parameters = std::move(match.parameters);
  return std::nullopt;
}

Connection::Awaitable<std::optional<Response>> Connection::read_body(Incoming& incoming) {
  auto& parser = incoming.parser;
  if (parser.is_done()) co_return std::nullopt;
  arm(state_.limits.body);
  if (incoming.parser.get().version() >= 11 && !incoming.request.header("expect").empty() &&
      !co_await write_all("HTTP/1.1 100 Continue\r\n\r\n")) {
    co_return Response{};
  }
  arm(state_.limits.body);
  while (!parser.is_done()) {
    error_code error;
    co_await http::async_read_some(socket_, buffer_, parser, with(error));
    if (timed_out_) co_return fault(408, "body_timeout", "the request's body took too long");
    if (error) {
      peer_gone_ = !read_fault(error, state_.limits);
      co_return read_fault(error, state_.limits).value_or(Response{});
    }
    const size_t size = parser.get().body().size();
    state_.body_bytes += size - incoming.counted;
    incoming.counted = size;
    if (state_.body_bytes > state_.limits.all_bodies_bytes) {
      Response full = fault(503, "server_busy", "too many large requests at once: try again");
      full.headers.push_back({"Retry-After", "5"});
      co_return full;
    }
  }
  disarm();
  co_return std::nullopt;
}

std::shared_ptr<Exchange> Connection::make_exchange(const Incoming& incoming, bool keep_alive) {
  const bool modern = incoming.parser.get().version() >= 11;
  return std::make_shared<Exchange>(
      Exchange::Shape{.http_1_1 = modern,
                      .keep_alive = keep_alive && incoming.parser.get().keep_alive(),
                      .head = incoming.request.method == "HEAD",
                      .queue_limit_bytes = state_.limits.queue_bytes,
                      .extra = state_.guard.response_headers(incoming.request)},
      [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self) return;
        asio::post(self->socket_.get_executor(), [self] { self->wake(); });
      });
}

/// True when the connection may go on.
Connection::Awaitable<bool> Connection::serve_one() {
  // Shared with the worker that runs the handler.
  const auto incoming = std::make_shared<Incoming>(state_);
  auto refusal = co_await read_head(*incoming);
  const bool head_read = !refusal;
  if (head_read) refusal = admit(*incoming);
  if (!refusal) refusal = co_await read_body(*incoming);
  disarm();
  if (peer_gone_ || cut_) co_return false;
  if (refusal) {
    state_.router.restate(incoming->request.path, *refusal);
    unread_body_ = !head_read || !incoming->has_known_end || !incoming->parser.is_done();
    const auto exchange = make_exchange(*incoming, !unread_body_ && !state_.draining);
    exchange->send(std::move(*refusal));
    co_return co_await write_all(exchange->take().bytes) && exchange->keeps_alive();
  }
  const auto exchange = make_exchange(*incoming, !state_.draining);
  current_ = exchange;
  incoming->request.body = std::move(incoming->parser.get().body());
  dispatch(incoming, exchange);
  co_await send_reply(exchange);
  co_await stop_watching();
  const bool again = exchange->keeps_alive() && !peer_gone_ && !cut_;
  exchange->abandon();
  co_return again;
}

void Connection::dispatch(std::shared_ptr<Incoming> incoming,
                          const std::shared_ptr<Exchange>& exchange) {
  state_.run_handler([incoming = std::move(incoming), reply = make_handle(exchange)]() mutable {
    const Route& route = *incoming->route;
    try {
      route.handler(incoming->request, std::move(reply));
    } catch (const std::exception& error) {
      TANDEM_LOG(kError, "the handler of {} {} threw {}", route.method, route.pattern,
                 type_of(error));
    }
  });
}

Connection::Awaitable<void> Connection::send_reply(std::shared_ptr<Exchange> exchange) {
  watch_peer(exchange);
  auto last_write = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::time_point> give_up;
  while (true) {
    awake_ = false;
    Exchange::Batch batch = exchange->take();
    if (batch.cut || cut_) break;
    if (!batch.bytes.empty()) {
      if (!co_await write_all(std::move(batch.bytes))) break;
      last_write = std::chrono::steady_clock::now();
      if (!batch.is_last) continue;
    }
    if (batch.is_last) co_return;
    auto until = std::chrono::steady_clock::time_point::max();
    const auto period = exchange->beat_period();
    if (period) until = last_write + *period;
    if (peer_gone_) {
      if (!give_up) give_up = std::chrono::steady_clock::now() + kHandlerGrace;
      until = *give_up;
    }
    if (awake_) continue;
    error_code error;
    wakeup_.expires_at(until);
    co_await wakeup_.async_wait(with(error));
    if (error) continue;
    if (peer_gone_) break;
    exchange->beat();
  }
  peer_gone_ = true;
  error_code ignored;
  socket_.close(ignored);
  exchange->close();
}

/// Sees the client leave while its request runs. Bytes of a next request wait in the buffer.
void Connection::watch_peer(std::shared_ptr<Exchange> exchange) {
  if (buffer_.size() >= state_.limits.header_bytes) return;
  watching_ = true;
  unwatch_ = false;
  socket_.async_read_some(buffer_.prepare(kReadBytes),
                          [self = shared_from_this(), exchange](error_code error, size_t count) {
                            self->watching_ = false;
                            self->buffer_.commit(count);
                            if (self->unwatch_ || error == asio::error::operation_aborted)
                              return self->wake();
                            if (!error) return self->watch_peer(exchange);
                            self->peer_gone_ = true;
                            exchange->close();
                            self->wake();
                          });
}

Connection::Awaitable<void> Connection::stop_watching() {
  error_code ignored;
  unwatch_ = true;
  if (watching_) socket_.cancel(ignored);
  while (watching_) {
    wakeup_.expires_at(std::chrono::steady_clock::time_point::max());
    co_await wakeup_.async_wait(with(ignored));
  }
}

/// False when the client went away or took nothing for too long.
Connection::Awaitable<bool> Connection::write_all(std::string bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    error_code error;
    arm(state_.limits.stall);
    sent += co_await socket_.async_write_some(
        asio::buffer(bytes.data() + sent, bytes.size() - sent), with(error));
    disarm();
    if (error) co_return false;
  }
  co_return true;
}

/// Closes so that a client still sending reads the answer before it sees a reset.
Connection::Awaitable<void> Connection::linger() {
  error_code error;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, error);
  if (unread_body_ && !error) {
    arm(kLinger);
    while (!error && !timed_out_) {
      buffer_.clear();
      co_await socket_.async_read_some(buffer_.prepare(kReadBytes), with(error));
    }
    disarm();
  }
  socket_.close(error);
}

}  // namespace tandem::net
