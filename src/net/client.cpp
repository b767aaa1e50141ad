#include "net/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <limits>
#include <optional>

namespace tandem::net {
namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kPoll{100};

/// Runs asynchronous operations one at a time under a deadline.
class Call {
 public:
  explicit Call(const ClientOptions& options) : options_(options), socket_(io_), resolver_(io_) {}

  Status open(const std::string& host, const std::string& port) {
    tcp::resolver::results_type found;
    Status status = run(options_.connect, "cannot resolve " + host, [&](auto done) {
      resolver_.async_resolve(host, port, [&, done](error_code error, auto results) {
        found = results;
        done(error);
      });
    });
    if (!status) return status;
    return run(options_.connect, "cannot connect", [&](auto done) {
      asio::async_connect(socket_, found, [done](error_code error, const auto&) { done(error); });
    });
  }

  Status write(const std::string& bytes) {
    return run(options_.idle, kBroke, [&](auto done) {
      asio::async_write(socket_, asio::buffer(bytes),
                        [done](error_code error, size_t) { done(error); });
    });
  }

  Status read_header() {
    parser_.body_limit(std::numeric_limits<uint64_t>::max());
    return run(options_.idle, kBroke, [&](auto done) {
      http::async_read_header(socket_, buffer_, parser_,
                              [done](error_code error, size_t) { done(error); });
    });
  }

  /// Some more of the body, empty at its end.
  Result<std::string> read_some() {
    auto& body = parser_.get().body();
    while (body.empty() && !parser_.is_done()) {
      Status status = run(options_.idle, kBroke, [&](auto done) {
        http::async_read_some(socket_, buffer_, parser_,
                              [done](error_code error, size_t) { done(error); });
      });
      if (!status) return status.error();
    }
    return std::exchange(body, {});
  }

  Response head() const {
    Response response{
        .status = static_cast<int>(parser_.get().result_int()), .headers = {}, .body = {}};
    for (const auto& field : parser_.get()) {
      response.headers.push_back({std::string(field.name_string()), std::string(field.value())});
    }
    return response;
  }

 private:
  static constexpr const char* kBroke = "the connection broke";

  /// `trouble`: what it means that it fails.
  template <class Start>
  Status run(milliseconds limit, const std::string& trouble, Start start) {
    std::optional<error_code> outcome;
    start([&outcome](error_code error) { outcome = error; });
    const auto end = std::chrono::steady_clock::now() + limit;
    std::optional<Error> stopped;
    while (!outcome) {
      io_.restart();
      io_.run_one_for(kPoll);
      if (outcome || stopped) continue;
      if (options_.cancelled && options_.cancelled()) {
        stopped = Error{ErrorCode::kCancelled, "the call was cancelled"};
      } else if (std::chrono::steady_clock::now() > end) {
        stopped =
            Error{ErrorCode::kDeadline, fmt::format("the server was silent for {} s",
                                                    std::chrono::duration<double>(limit).count())};
      }
      if (!stopped) continue;
      error_code ignored;
      resolver_.cancel();
      socket_.close(ignored);
    }
    if (stopped) return *stopped;
    if (!*outcome) return {};
    const bool ours = outcome->category() == make_error_code(http::error::bad_method).category();
    if (ours && *outcome != http::error::end_of_stream &&
        *outcome != http::error::partial_message) {
      return Error{ErrorCode::kCorrupt, "the server's answer is not HTTP: " + outcome->message()};
    }
    return Error{ErrorCode::kPeerLost, trouble + ": " + outcome->message()};
  }

  const ClientOptions& options_;
  asio::io_context io_;
  tcp::socket socket_;
  tcp::resolver resolver_;
  boost::beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
};

Result<Response> read_whole(Call& call) {
  Response response = call.head();
  while (true) {
    auto piece = call.read_some();
    if (!piece) return piece.error();
    if (piece->empty()) return response;
    response.body += *piece;
  }
}

Result<Response> read_events(Call& call, const std::function<bool(const SseEvent&)>& event) {
  SseParser parser;
  while (true) {
    const auto piece = call.read_some();
    if (!piece) return piece.error();
    if (piece->empty()) return call.head();
    for (const SseEvent& found : parser.feed(*piece)) {
      if (!event(found)) return call.head();
    }
  }
}

bool is_event_stream(const Response& response) {
  return find_header(response.headers, "content-type").starts_with("text/event-stream");
}

}  // namespace

Result<Client> Client::make(const std::string& url, ClientOptions options) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) {
    return Error{ErrorCode::kInvalid, fmt::format("'{}' does not start with http://", url), "url"};
  }
  Client client;
  client.options_ = std::move(options);
  const std::string rest = url.substr(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  client.prefix_ = rest.substr(slash);
  while (client.prefix_.ends_with('/')) client.prefix_.pop_back();
  std::string authority = rest.substr(0, slash);
  const size_t colon = authority.rfind(':');
  const bool has_port =
      colon != std::string::npos && authority.find(']', colon) == std::string::npos;
  client.port_ = has_port ? authority.substr(colon + 1) : "80";
  client.host_ = authority.substr(0, has_port ? colon : authority.size());
  if (client.host_.starts_with('[') && client.host_.ends_with(']')) {
    client.host_ = client.host_.substr(1, client.host_.size() - 2);
  }
  const bool digits = std::all_of(client.port_.begin(), client.port_.end(),
                                  [](char c) { return c >= '0' && c <= '9'; });
  if (client.host_.empty() || client.port_.empty() || !digits) {
    return Error{ErrorCode::kInvalid, fmt::format("'{}' names no host and port", url), "url"};
  }
  return client;
}

Result<Response> Client::get(const std::string& path) const {
  return request("GET", path, {}, nullptr);
}

Result<Response> Client::post(const std::string& path, std::string body) const {
  return request("POST", path, std::move(body), nullptr);
}

Result<Response> Client::erase(const std::string& path) const {
  return request("DELETE", path, {}, nullptr);
}

Result<Response> Client::stream(const std::string& path,
                                std::string body,
                                const std::function<bool(const SseEvent&)>& event) const {
  return request("POST", path, std::move(body), event);
}

Result<Response> Client::request(const std::string& method,
                                 const std::string& path,
                                 std::string body,
                                 const std::function<bool(const SseEvent&)>& event) const {
  Call call(options_);
  if (Status status = call.open(host_, port_); !status) return status.error();
  const bool v6 = host_.find(':') != std::string::npos;
  std::string bytes = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\n",
                                  method, prefix_, path, v6 ? "[" + host_ + "]" : host_, port_);
  if (!options_.key.empty()) bytes += fmt::format("Authorization: Bearer {}\r\n", options_.key);
  if (method == "POST") {
    bytes += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  }
  bytes += "\r\n" + body;
  // A server that refuses early stops reading, so its answer counts more than a failed write.
  const Status written = call.write(bytes);
  const Status read = call.read_header();
  if (!read) return written ? read.error() : written.error();
  if (event && is_event_stream(call.head())) return read_events(call, event);
  return read_whole(call);
}

}  // namespace tandem::net
