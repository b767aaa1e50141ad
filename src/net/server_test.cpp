#include "net/server.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "net/client.h"
#include "net/raw_socket_test.h"
#include "net/sse.h"

namespace tandem::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A server with an echo, a stream that the test feeds, and a request that never answers.
class Fixture {
 public:
  explicit Fixture(ServerOptions options = {}) {
    Router router;
    router.add({.method = "POST",
                .pattern = "/echo",
                .handler = [](const Request& request, const std::shared_ptr<Reply>& reply) {
                  reply->send({.status = 200, .headers = {}, .body = request.body});
                }});
    router.add({.method = "GET",
                .pattern = "/open",
                .handler =
                    [](const Request&, const std::shared_ptr<Reply>& reply) {
                      reply->send({.status = 200, .headers = {}, .body = "open"});
                    },
                .access = Access::kOpen});
    router.add({.method = "POST",
                .pattern = "/hold",
                .handler = [this](const Request&, const std::shared_ptr<Reply>& reply) {
                  reply->on_closed([this] { closed_.set_value(); });
                  held_.set_value(reply);
                }});
    router.add({.method = "GET",
                .pattern = "/drop",
                .handler = [](const Request&, const std::shared_ptr<Reply>&) {}});
    router.add({.method = "POST",
                .pattern = "/throw/{what}",
                .handler = [](const Request& request, const std::shared_ptr<Reply>&) {
                  throw std::runtime_error("cannot read " + request.body);
                }});
    server_ = std::move(Server::start(options, std::move(router))).value();
  }

  Server& server() { return *server_; }
  uint16_t port() const { return server_->port(); }
  std::shared_ptr<Reply> held() { return held_.get_future().get(); }
  bool closed_within(milliseconds limit) {
    return closed_.get_future().wait_for(limit) == std::future_status::ready;
  }

 private:
  std::promise<std::shared_ptr<Reply>> held_;
  std::promise<void> closed_;
  std::unique_ptr<Server> server_;
};

/// What the process writes to stderr meanwhile.
class StderrCapture {
 public:
  StderrCapture() : file_(std::tmpfile()), before_(::dup(STDERR_FILENO)) {
    std::fflush(stderr);
    ::dup2(::fileno(file_), STDERR_FILENO);
  }
  StderrCapture(const StderrCapture&) = delete;
  StderrCapture& operator=(const StderrCapture&) = delete;
  ~StderrCapture() {
    std::fflush(stderr);
    ::dup2(before_.get(), STDERR_FILENO);
    std::fclose(file_);
  }

  std::string text() const {
    std::fflush(stderr);
    std::string read(1U << 16, '\0');
    const ssize_t size = ::pread(::fileno(file_), read.data(), read.size(), 0);
    read.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
    return read;
  }

 private:
  std::FILE* const file_;
  const Fd before_;
};

std::string post(std::string_view path, std::string_view body, std::string_view headers = "") {
  return fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{}\r\n{}", path,
                     body.size(), headers, body);
}

bool starts_with(const std::string& text, std::string_view start) {
  return text.starts_with(start);
}

TEST_CASE("server: one connection carries many requests, also when they come at once") {
  Fixture fixture;
  RawSocket socket(fixture.port());
  for (int i = 0; i < 3; ++i) {
    REQUIRE(socket.send(post("/echo?x=1", fmt::format("body{}", i))));
    CHECK(socket.read_until(fmt::format("body{}", i)).find("200 OK") != std::string::npos);
  }
  std::string many;
  for (int i = 0; i < 20; ++i) many += post("/echo", fmt::format("<{}>", i));
  REQUIRE(socket.send(many));
  const std::string answers = socket.read_until("<19>");
  size_t at = 0;
  for (int i = 0; i < 20; ++i) {
    at = answers.find(fmt::format("<{}>", i), at);
    CHECK(at != std::string::npos);
  }
}

TEST_CASE("server: a request cut into single bytes is the same request") {
  Fixture fixture;
  RawSocket socket(fixture.port());
  const std::string request =
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n";
  for (const char c : request) REQUIRE(socket.send(std::string(1, c)));
  CHECK(socket.read_until("abcdefg").find("Content-Length: 7") != std::string::npos);
}

TEST_CASE("server: what is not HTTP, not there or not allowed is refused by its own status") {
  Fixture fixture;
  const struct {
    std::string bytes;
    std::string_view status;
  } cases[] = {
      {"\x16\x03\x01\x02\r\n\r\n", "HTTP/1.1 400"},
      {"GET\r\n\r\n", "HTTP/1.1 400"},
      {"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 404"},
      {"DELETE /echo HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 405"},
      {"GET /open HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 403"},
      {"GET /open HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil\r\n\r\n", "HTTP/1.1 403"},
      {"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 400"},
      {"POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: tea\r\nContent-Length: 1\r\n\r\n",
       "HTTP/1.1 417"},
      {"GET /drop HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 500"},
      {"HEAD /open HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200"},
      {"OPTIONS /echo HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 204"},
      {"GET /open HTTP/1.1\r\n\r\n", "HTTP/1.1 400"},
      {"GET /open HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n", "HTTP/1.1 400"},
      {post("/echo", "zipped", "Content-Encoding: gzip\r\n"), "HTTP/1.1 415"},
      {post("/echo", "plain", "Content-Encoding: identity\r\n"), "HTTP/1.1 200"},
  };
  for (const auto& test : cases) {
    CAPTURE(test.bytes);
    RawSocket socket(fixture.port());
    REQUIRE(socket.send(test.bytes));
    CHECK(starts_with(socket.read_until("\r\n\r\n"), test.status));
  }
}

TEST_CASE("server: a body whose end is told in no known way is not taken for the next request") {
  Fixture fixture;
  for (const char* coding : {"gzip", "gzip, chunked", "chunked, chunked"}) {
    CAPTURE(coding);
    RawSocket socket(fixture.port());
    socket.send(
        fmt::format("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: {}\r\n\r\n"
                    "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    coding));
    const std::string seen = socket.read_all();
    CHECK(starts_with(seen, "HTTP/1.1 501"));
    CHECK(seen.find("200 OK") == std::string::npos);
  }
}

TEST_CASE("server: OPTIONS names what a path allows, also where there is nothing") {
  Fixture fixture;
  for (const auto& [path, allow] : {std::pair{"/echo", "\r\nAllow: POST, OPTIONS\r\n"},
                                    std::pair{"/nowhere", "\r\nAllow: OPTIONS\r\n"}}) {
    RawSocket socket(fixture.port());
    socket.send(fmt::format("OPTIONS {} HTTP/1.1\r\nHost: localhost\r\n\r\n", path));
    CHECK(socket.read_until("\r\n\r\n").find(allow) != std::string::npos);
  }
}

TEST_CASE("server: sizes are bounded before they cost memory") {
  ServerOptions options;
  options.limits.header_bytes = 8 * 1024;
  options.limits.body_bytes = 64 * 1024;
  Fixture fixture(options);
  SUBCASE("a huge header") {
    RawSocket socket(fixture.port());
    socket.send("GET /open HTTP/1.1\r\nX: ");
    std::string seen;
    for (int i = 0; i < 10'000 && socket.send(std::string(1024, 'a')); ++i) {
      seen = socket.read_until("\r\n\r\n", milliseconds(0));
      if (!seen.empty()) break;
    }
    if (seen.empty()) seen = socket.read_until("\r\n\r\n");
    CHECK(starts_with(seen, "HTTP/1.1 431"));
  }
  SUBCASE("a huge length with one byte") {
    RawSocket socket(fixture.port());
    socket.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\nx");
    CHECK(starts_with(socket.read_all(), "HTTP/1.1 413"));
  }
  SUBCASE("a chunked body without end") {
    RawSocket socket(fixture.port());
    socket.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    const std::string chunk = "400\r\n" + std::string(1024, 'a') + "\r\n";
    for (int i = 0; i < 70; ++i) socket.send(chunk);
    CHECK(starts_with(socket.read_until("\r\n\r\n"), "HTTP/1.1 413"));
  }
  CHECK(Client::make(fixture.server().url()).value().get("/open").value().body == "open");
}

TEST_CASE("server: time is bounded, and the slow do not hinder the others") {
  ServerOptions options;
  options.limits.header = milliseconds(200);
  options.limits.body = milliseconds(200);
  options.limits.idle = milliseconds(300);
  Fixture fixture(options);
  std::vector<std::unique_ptr<RawSocket>> slow;
  for (int i = 0; i < 50; ++i) {
    slow.push_back(std::make_unique<RawSocket>(fixture.port()));
    slow.back()->send(i % 2
                          ? "GET /open HT"
                          : "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx");
  }
  RawSocket idle(fixture.port());
  CHECK(Client::make(fixture.server().url()).value().get("/open").value().body == "open");
  for (const auto& socket : slow) CHECK(starts_with(socket->read_all(), "HTTP/1.1 408"));
  CHECK(idle.read_all().empty());
  CHECK(idle.is_closed());
}

TEST_CASE("server: connections are bounded, and room is made again") {
  ServerOptions options;
  options.limits.connections = 2;
  Fixture fixture(options);
  auto first = std::make_unique<RawSocket>(fixture.port());
  RawSocket second(fixture.port());
  for (RawSocket* socket : {first.get(), &second}) {
    socket->send("GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(socket->read_until("open").find("200 OK") != std::string::npos);
  }
  RawSocket third(fixture.port());
  CHECK(starts_with(third.read_all(), "HTTP/1.1 503"));
  first.reset();
  while (fixture.server().connections() > 1) std::this_thread::yield();
  RawSocket fourth(fixture.port());
  fourth.send("GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(fourth.read_until("open").find("200 OK") != std::string::npos);
}

TEST_CASE("server: a client that waits for 100-continue gets it") {
  Fixture fixture;
  RawSocket socket(fixture.port());
  socket.send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: "
      "5\r\n\r\n");
  CHECK(starts_with(socket.read_until("\r\n\r\n"), "HTTP/1.1 100"));
  socket.send("hello");
  CHECK(socket.read_until("hello").find("200 OK") != std::string::npos);
  RawSocket old(fixture.port());
  old.send("POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello");
  CHECK(starts_with(old.read_all(), "HTTP/1.1 200"));
}

TEST_CASE("server: keys guard every route but the open ones, before a body is read") {
  ServerOptions options;
  options.keys = {"secret"};
  Fixture fixture(options);
  RawSocket socket(fixture.port());
  socket.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  CHECK(starts_with(socket.read_until("\r\n\r\n"), "HTTP/1.1 401"));
  const Client none = Client::make(fixture.server().url()).value();
  CHECK(none.get("/open").value().status == 200);
  CHECK(none.get("/nowhere").value().status == 401);
  CHECK(none.post("/echo", "x").value().status == 401);
  const Client good =
      Client::make(fixture.server().url(), {.key = "secret", .cancelled = {}}).value();
  CHECK(good.post("/echo", "x").value().body == "x");
  CHECK(good.get("/nowhere").value().status == 404);
}

TEST_CASE("server: it listens beyond loopback only with a key or on insistence") {
  ServerOptions options;
  options.host = "0.0.0.0";
  auto refused = Server::start(options, Router());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kForbidden);
  options.keys = {"k"};
  CHECK(Server::start(options, Router()).has_value());
  options.keys.clear();
  options.allow_open = true;
  CHECK(Server::start(options, Router()).has_value());
  options.host = "no such host";
  CHECK(Server::start(options, Router()).error().code == ErrorCode::kInvalid);
}

TEST_CASE("server: a client that leaves during a request is noticed at once") {
  Fixture fixture;
  RawSocket socket(fixture.port());
  socket.send(post("/hold", "{}"));
  const auto reply = fixture.held();
  SUBCASE("before the answer began") {}
  SUBCASE("in a stream") {
    reply->start(200, sse_headers());
    reply->write(encode_sse("x"));
    CHECK(socket.read_until("data: x").find("chunked") != std::string::npos);
  }
  socket.close();
  CHECK(fixture.closed_within(seconds(1)));
}

TEST_CASE("server: a client that only ended its sending still reads a prompt answer") {
  Fixture fixture;
  RawSocket socket(fixture.port());
  socket.send(post("/echo", "half"));
  socket.end_sending();
  CHECK(socket.read_all().find("half") != std::string::npos);
}

TEST_CASE("server: a stream whose client does not read is cut, and never blocks its writer") {
  ServerOptions options;
  options.limits.queue_bytes = 256 * 1024;
  Fixture fixture(options);
  RawSocket socket(fixture.port(), 4096);
  socket.send(post("/hold", "{}"));
  const auto reply = fixture.held();
  reply->start(200, sse_headers());
  const std::string piece = encode_sse(std::string(1000, 'x'));
  const auto begin = std::chrono::steady_clock::now();
  size_t written = 0;
  while (written < (64U << 20) && reply->write(piece)) written += piece.size();
  CHECK(written < (2U << 20));  // the bound, and what the system holds for it
  CHECK(std::chrono::steady_clock::now() - begin < seconds(10));
  CHECK(fixture.closed_within(seconds(1)));
}

TEST_CASE("server: an open stream is kept alive by comments while there is nothing to say") {
  Fixture fixture;
  RawSocket socket(fixture.port());
  socket.send(post("/hold", "{}"));
  const auto reply = fixture.held();
  reply->start(200, sse_headers());
  std::atomic<int> done = 0;
  reply->keep_alive(milliseconds(20),
                    [&] { return encode_sse_comment(fmt::format("beat {}", ++done)); });
  CHECK(socket.read_until(": beat 3").find(": beat 2") != std::string::npos);
  reply->write(encode_sse("[DONE]"));
  reply->finish();
  CHECK(socket.read_until("0\r\n\r\n").find("[DONE]") != std::string::npos);
}

TEST_CASE("server: a stream given up by its handler does not look complete") {
  Fixture fixture;
  RawSocket socket(fixture.port());
  socket.send(post("/hold", "{}"));
  {
    const auto reply = fixture.held();
    reply->start(200, sse_headers());
    reply->write(encode_sse("x"));
    CHECK(socket.read_until("data: x").find("200 OK") != std::string::npos);
  }
  CHECK(socket.read_all().find("0\r\n\r\n") == std::string::npos);
  CHECK(socket.is_closed());
}

TEST_CASE("server: a handler that throws is a 500, and what it says stays out of the log") {
  const StderrCapture log;
  {
    Fixture fixture;
    RawSocket socket(fixture.port());
    REQUIRE(socket.send(post("/throw/secret-path", "secret-body")));
    CHECK(starts_with(socket.read_until("no_reply"), "HTTP/1.1 500"));
    CHECK(socket.send(post("/echo", "on")));  // the server lives on
    CHECK(socket.read_until("on").find("200 OK") != std::string::npos);
  }
  const std::string text = log.text();
  CHECK(text.find("the handler of POST /throw/{what} threw std::runtime_error") !=
        std::string::npos);
  CHECK(text.find("secret") == std::string::npos);
}

TEST_CASE("server: a stop lets a running request end and takes no new one") {
  Fixture fixture;
  RawSocket busy(fixture.port());
  RawSocket idle(fixture.port());
  busy.send(post("/hold", "{}"));
  const auto reply = fixture.held();
  const uint16_t port = fixture.port();
  auto stopped = std::async(std::launch::async, [&] { fixture.server().stop(seconds(20)); });
  CHECK(idle.read_all().empty());
  CHECK(idle.is_closed());
  reply->send({.status = 200, .headers = {}, .body = "last words"});
  CHECK(busy.read_all().find("last words") != std::string::npos);
  CHECK(stopped.wait_for(seconds(5)) == std::future_status::ready);
  CHECK_FALSE(RawSocket(port).is_connected());
}

TEST_CASE("server: a stop cuts what does not end in time") {
  Fixture fixture;
  RawSocket busy(fixture.port());
  busy.send(post("/hold", "{}"));
  const auto reply = fixture.held();
  fixture.server().stop(milliseconds(50));
  CHECK(fixture.closed_within(milliseconds(0)));
  CHECK(busy.read_all().empty());
  reply->send({.status = 200, .headers = {}, .body = "nobody hears"});
}

TEST_CASE("client: reads an event stream as it comes and may leave it") {
  Fixture fixture;
  const Client client = Client::make(fixture.server().url() + "/").value();
  std::vector<SseEvent> events;
  auto answer = std::async(std::launch::async, [&] {
    return client.stream("/hold", "{}", [&](const SseEvent& event) {
      events.push_back(event);
      return event.data != "two";
    });
  });
  const auto reply = fixture.held();
  reply->start(200, sse_headers());
  reply->write(encode_sse_comment("hi") + encode_sse("one") + encode_sse("two") +
               encode_sse("three"));
  CHECK(answer.get().value().status == 200);
  REQUIRE(events.size() == 3);
  CHECK(events[0].comment == "hi");
  CHECK(events[2].data == "two");
  CHECK(fixture.closed_within(seconds(1)));
}

TEST_CASE("client: says what went wrong") {
  CHECK(Client::make("https://x").error().code == ErrorCode::kInvalid);
  CHECK(Client::make("http://:80").error().code == ErrorCode::kInvalid);
  CHECK(Client::make("http://host:x").error().code == ErrorCode::kInvalid);
  Fixture fixture;
  const std::string url = fixture.server().url();
  const Client impatient =
      Client::make(url, {.key = {}, .idle = milliseconds(50), .cancelled = {}}).value();
  CHECK(impatient.post("/hold", "{}").error().code == ErrorCode::kDeadline);
  CHECK(fixture.closed_within(seconds(1)));
  fixture.server().stop(milliseconds(0));
  CHECK(impatient.get("/open").error().code == ErrorCode::kPeerLost);
}

}  // namespace
}  // namespace tandem::net
