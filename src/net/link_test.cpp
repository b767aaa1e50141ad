#include "net/link.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "net/link_listener.h"
#include "net/link_socket.h"

namespace tandem::net {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;

constexpr auto kPatience = 10s;

Bytes bytes_of(std::string_view text) {
  const auto* from = reinterpret_cast<const std::byte*>(text.data());
  return {from, from + text.size()};
}

const Bytes kSecret = bytes_of("0123456789abcdef0123456789abcdef");

/// What a link received, for the test's thread to wait on.
class Inbox {
 public:
  LinkHandlers handlers() {
    return {.on_frame =
                [this](std::span<const std::byte> frame) {
                  const std::lock_guard lock(mutex_);
                  frames_.emplace_back(frame.begin(), frame.end());
                  changed_.notify_all();
                },
            .on_closed =
                [this](Error why) {
                  const std::lock_guard lock(mutex_);
                  ++closed_times_;
                  closed_ = std::move(why);
                  changed_.notify_all();
                }};
  }
  std::optional<Bytes> next() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return !frames_.empty() || closed_; });
    if (frames_.empty()) return std::nullopt;
    Bytes frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }
  std::optional<Error> closed() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return closed_.has_value(); });
    return closed_;
  }
  int closed_times() {
    const std::lock_guard lock(mutex_);
    return closed_times_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Bytes> frames_;
  std::optional<Error> closed_;
  int closed_times_ = 0;
};

/// A listener that hands accepted links to the test's thread.
class LinkServer {
 public:
  explicit LinkServer(LinkListenerOptions options = {.link = {.secret = kSecret}}) {
    auto made = listen_links("127.0.0.1:0", options, [this](std::unique_ptr<Link> link) {
      const std::lock_guard lock(mutex_);
      links_.push_back(std::move(link));
      changed_.notify_all();
    });
    REQUIRE(made);
    listener_ = *std::move(made);
  }
  LinkListener& listener() { return *listener_; }
  std::unique_ptr<Link> next() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return !links_.empty(); });
    if (links_.empty()) return nullptr;
    auto link = std::move(links_.front());
    links_.pop_front();
    return link;
  }
  size_t waiting() {
    const std::lock_guard lock(mutex_);
    return links_.size();
  }
  bool refuses(uint64_t count) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (listener_->refused() < count && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    return listener_->refused() == count;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Link>> links_;
  std::unique_ptr<LinkListener> listener_;
};

/// Both ends of a link, started.
struct Pair {
  explicit Pair(LinkOptions options = {.secret = kSecret})
      : server({.link = options}),
        client(*connect_link(server.listener().address(), options, 5s)),
        accepted(server.next()) {
    REQUIRE(accepted);
  }
  void start() {
    client->start(at_client.handlers());
    accepted->start(at_accepted.handlers());
  }
  Inbox at_client;
  Inbox at_accepted;
  LinkServer server;
  std::unique_ptr<Link> client;
  std::unique_ptr<Link> accepted;
};

TEST_CASE("link: frames arrive whole and in order, both ways, whatever their size") {
  Pair pair;
  pair.start();
  std::mt19937 random(1);
  std::vector<Bytes> sent;
  for (int i = 0; i < 3000; ++i) {
    Bytes frame(i % 100 == 0 ? random() % 200'000 : random() % 300);
    for (auto& byte : frame) byte = static_cast<std::byte>(random());
    sent.push_back(std::move(frame));
  }
  std::thread back([&] {
    for (const Bytes& frame : sent) {
      while (!pair.accepted->send(frame)) std::this_thread::yield();
    }
  });
  for (const Bytes& frame : sent) {
    while (!pair.client->send(frame)) std::this_thread::yield();
  }
  for (const Bytes& frame : sent) {
    REQUIRE(pair.at_accepted.next() == frame);
    REQUIRE(pair.at_client.next() == frame);
  }
  back.join();
}

TEST_CASE("link: frames sent by many threads never mix") {
  Pair pair;
  pair.start();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const Bytes frame(static_cast<size_t>(1 + 37 * t), static_cast<std::byte>(t));
        while (!pair.client->send(frame)) std::this_thread::yield();
      }
    });
  }
  std::array<int, 4> seen{};
  for (int i = 0; i < 2000; ++i) {
    const auto frame = pair.at_accepted.next();
    REQUIRE(frame);
    const auto t = static_cast<size_t>((*frame)[0]);
    REQUIRE(*frame == Bytes(1 + 37 * t, static_cast<std::byte>(t)));
    ++seen[t];
  }
  for (auto& thread : threads) thread.join();
  CHECK(seen == std::array<int, 4>{500, 500, 500, 500});
}

TEST_CASE("link: frames sent before the other side started are delivered") {
  Pair pair;
  pair.client->start(pair.at_client.handlers());
  REQUIRE(pair.client->send(bytes_of("early")));
  pair.accepted->start(pair.at_accepted.handlers());
  CHECK(pair.at_accepted.next() == bytes_of("early"));
}

TEST_CASE("link: a frame of 32 MiB passes, one byte over the bound does not") {
  Pair pair({.secret = kSecret, .max_frame_bytes = size_t{32} << 20});
  pair.start();
  Bytes big(size_t{32} << 20, std::byte{7});
  big.back() = std::byte{8};
  REQUIRE(pair.client->send(big));
  CHECK(pair.at_accepted.next() == big);
  big.push_back(std::byte{0});
  CHECK(pair.client->send(big).error().code == ErrorCode::kTooLarge);
}

TEST_CASE("link: a frame that announces more than the receiver's bound ends the link as corrupt") {
  LinkServer server({.link = {.secret = kSecret, .max_frame_bytes = 100}});
  Inbox at_client;
  Inbox at_server;
  auto client = *connect_link(server.listener().address(), {.secret = kSecret}, 5s);
  auto accepted = server.next();
  REQUIRE(accepted);
  accepted->start(at_server.handlers());
  client->start(at_client.handlers());
  REQUIRE(client->send(Bytes(101)));
  CHECK(at_server.closed()->code == ErrorCode::kCorrupt);
  CHECK(at_client.closed()->code == ErrorCode::kPeerLost);
}

TEST_CASE("link: the wrong secret is refused on both sides, the right one still works") {
  LinkServer server;
  const auto refused = connect_link(server.listener().address(),
                                    {.secret = bytes_of("fedcba9876543210fedcba9876543210")}, 5s);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnauthorized);
  CHECK(server.refuses(1));
  CHECK(server.waiting() == 0);
  CHECK(connect_link(server.listener().address(), {.secret = kSecret}, 5s));
}

TEST_CASE("link: a secret under 16 bytes is refused") {
  CHECK(connect_link("127.0.0.1:1", {.secret = bytes_of("short")}, 1s).error().code ==
        ErrorCode::kInvalid);
}

TEST_CASE("link: nobody listening, and an address that is none, are told apart") {
  std::string address;
  {
    const LinkServer server;
    address = const_cast<LinkServer&>(server).listener().address();
  }
  CHECK(connect_link(address, {.secret = kSecret}, 1s).error().code == ErrorCode::kUnavailable);
  for (const char* bad : {"", "host", ":80", "1.2.3.4:", "::1:80", "1.2.3.4:99999", "a:8x"}) {
    CAPTURE(bad);
    CHECK(connect_link(bad, {.secret = kSecret}, 1s).error().code == ErrorCode::kInvalid);
  }
}

TEST_CASE("link: strangers' garbage and silence neither pass nor delay anyone") {
  LinkServer server({.link = {.secret = kSecret}, .handshake_timeout = 300ms});
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  auto garbage = connect_tcp(server.listener().address(), deadline);
  auto silent = connect_tcp(server.listener().address(), deadline);
  REQUIRE(garbage);
  REQUIRE(silent);
  const std::string http = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  REQUIRE(::send(garbage->get(), http.data(), http.size(), 0) > 0);
  const auto client = connect_link(server.listener().address(), {.secret = kSecret}, 5s);
  CHECK(client);  // while the silent one is still in its handshake
  CHECK(server.next());
  CHECK(server.refuses(2));
  char byte = 0;
  REQUIRE(wait_for(silent->get(), POLLIN, std::chrono::steady_clock::now() + 5s));
  CHECK(::recv(silent->get(), &byte, 1, 0) <= 0);
}

TEST_CASE("link: more handshakes than the bound drop the oldest, not the newest") {
  LinkServer server({.link = {.secret = kSecret}, .handshake_timeout = 60s, .max_handshakes = 4});
  std::vector<Fd> idle;
  for (int i = 0; i < 10; ++i) {
    auto fd = connect_tcp(server.listener().address(), std::chrono::steady_clock::now() + 5s);
    REQUIRE(fd);
    idle.push_back(*std::move(fd));
  }
  CHECK(connect_link(server.listener().address(), {.secret = kSecret}, 5s));
}

TEST_CASE("link: a listener without a secret keeps peers waiting until it has one") {
  LinkServer server({.link = {}});
  auto connecting = std::async(std::launch::async, [&] {
    return connect_link(server.listener().address(), {.secret = kSecret}, 5s);
  });
  CHECK(connecting.wait_for(50ms) == std::future_status::timeout);
  REQUIRE(server.listener().set_secret(kSecret));
  CHECK(connecting.get());
  CHECK(server.next());
}

TEST_CASE("link: after a change of secret the old one is refused and links made live on") {
  Pair pair;
  pair.start();
  const Bytes other = bytes_of("another secret, of another epoch");
  REQUIRE(pair.server.listener().set_secret(other));
  const std::string address = pair.server.listener().address();
  CHECK(connect_link(address, {.secret = kSecret}, 5s).error().code == ErrorCode::kUnauthorized);
  CHECK(connect_link(address, {.secret = other}, 5s));
  REQUIRE(pair.client->send(Bytes(3)));
  CHECK(pair.at_accepted.next() == Bytes(3));
}

TEST_CASE("link: connecting to one who accepts and says nothing ends at the deadline") {
  const auto mute = listen_tcp("127.0.0.1:0");
  REQUIRE(mute);
  const auto before = std::chrono::steady_clock::now();
  const auto late = connect_link(local_address(mute->get()), {.secret = kSecret}, 200ms);
  REQUIRE_FALSE(late);
  CHECK(late.error().code == ErrorCode::kDeadline);
  CHECK(std::chrono::steady_clock::now() - before < 3s);
}

TEST_CASE("link: connecting can be given up from another thread") {
  const auto mute = listen_tcp("127.0.0.1:0");
  REQUIRE(mute);
  std::atomic<bool> give_up{false};
  auto connecting = std::async(std::launch::async, [&] {
    return connect_link(local_address(mute->get()), {.secret = kSecret}, 60s, &give_up);
  });
  CHECK(connecting.wait_for(50ms) == std::future_status::timeout);
  give_up = true;
  REQUIRE(connecting.wait_for(5s) == std::future_status::ready);
  CHECK(connecting.get().error().code == ErrorCode::kCancelled);
}

TEST_CASE("link: closing delivers what was sent before, then ends both sides once") {
  Pair pair;
  pair.start();
  for (int i = 0; i < 100; ++i) REQUIRE(pair.client->send(Bytes(10'000, std::byte{1})));
  pair.client->close();
  pair.client->close();
  CHECK(pair.client->send(Bytes(1)).error().code == ErrorCode::kPeerLost);
  for (int i = 0; i < 100; ++i) REQUIRE(pair.at_accepted.next());
  CHECK(pair.at_accepted.closed()->code == ErrorCode::kPeerLost);
  CHECK(pair.at_client.closed()->code == ErrorCode::kCancelled);
  CHECK(pair.accepted->send(Bytes(1)).error().code == ErrorCode::kPeerLost);
  pair.client.reset();
  pair.accepted.reset();
  CHECK(pair.at_client.closed_times() == 1);
  CHECK(pair.at_accepted.closed_times() == 1);
}

TEST_CASE("link: a link may be closed from its own handler") {
  Pair pair;
  Link* accepted = pair.accepted.get();
  LinkHandlers handlers = pair.at_accepted.handlers();
  handlers.on_frame = [accepted](std::span<const std::byte>) { accepted->close(); };
  pair.accepted->start(std::move(handlers));
  pair.client->start(pair.at_client.handlers());
  REQUIRE(pair.client->send(Bytes(1)));
  CHECK(pair.at_accepted.closed()->code == ErrorCode::kCancelled);
  CHECK(pair.at_client.closed()->code == ErrorCode::kPeerLost);
}

TEST_CASE("link: sends to a peer that does not read fill the bounded queue and never wait") {
  Pair pair({.secret = kSecret, .max_queue_bytes = size_t{1} << 20, .linger = 100ms});
  pair.client->start(pair.at_client.handlers());  // the accepted end never reads
  const Bytes frame(64 << 10);
  bool full = false;
  for (int i = 0; i < 1000 && !full; ++i) {
    const auto before = std::chrono::steady_clock::now();
    const Status sent = pair.client->send(frame);
    CHECK(std::chrono::steady_clock::now() - before < 1s);
    full = !sent && sent.error().code == ErrorCode::kBusy;
  }
  CHECK(full);
  const auto before = std::chrono::steady_clock::now();
  pair.client.reset();  // lingers for 100 ms only
  CHECK(std::chrono::steady_clock::now() - before < 5s);
}

/// Passes bytes between a client and a server, and flips one bit at an offset of the client's.
class Tamperer {
 public:
  Tamperer(const std::string& to, size_t flip_at) : flip_at_(flip_at) {
    listening_ = *listen_tcp("127.0.0.1:0");
    thread_ = std::thread([this, to] { run(to); });
  }
  ~Tamperer() {
    stop_ = true;
    thread_.join();
  }
  std::string address() const { return local_address(listening_.get()); }

 private:
  void run(const std::string& to) {
    while (!stop_ && !wait_for(listening_.get(), POLLIN, SteadyClock().now() + 10ms)) {
    }
    const Fd client(::accept(listening_.get(), nullptr, nullptr));
    const Fd server = *connect_tcp(to, SteadyClock().now() + 5s);
    size_t passed = 0;
    while (!stop_) {
      pollfd fds[2] = {{client.get(), POLLIN, 0}, {server.get(), POLLIN, 0}};
      ::poll(fds, 2, 10);
      if (fds[0].revents != 0 && !pass(client, server, &passed)) return;
      if (fds[1].revents != 0 && !pass(server, client, nullptr)) return;
    }
  }
  bool pass(const Fd& from, const Fd& to, size_t* passed) const {
    char buffer[4096];
    const ssize_t got = ::recv(from.get(), buffer, sizeof buffer, 0);
    if (got <= 0) return false;
    const auto size = static_cast<size_t>(got);
    if (passed) {
      if (flip_at_ >= *passed && flip_at_ < *passed + size) buffer[flip_at_ - *passed] ^= 1;
      *passed += size;
    }
    return ::send(to.get(), buffer, size, MSG_NOSIGNAL) == got;
  }

  size_t flip_at_;
  Fd listening_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST_CASE("link: a flipped bit in the stream ends the link as corrupt and is never delivered") {
  LinkServer server;
  Tamperer tamperer(server.listener().address(), 5000);
  Inbox at_client;
  Inbox at_server;
  auto client = *connect_link(tamperer.address(), {.secret = kSecret}, 5s);
  auto accepted = server.next();
  REQUIRE(accepted);
  accepted->start(at_server.handlers());
  client->start(at_client.handlers());
  const Bytes frame(1000, std::byte{5});
  for (int i = 0; i < 10; ++i) {
    const Status sent = client->send(frame);  // the receiver may have closed already
    if (!sent) CHECK(sent.error().code == ErrorCode::kPeerLost);
  }
  while (const auto got = at_server.next()) CHECK(*got == frame);
  CHECK(at_server.closed()->code == ErrorCode::kCorrupt);
  CHECK(at_client.closed());
}

TEST_CASE("link: writing to a closed peer raises no SIGPIPE") {
  const auto before = std::signal(SIGPIPE, SIG_DFL);  // would end this process
  {
    Pair pair;
    pair.client->start(pair.at_client.handlers());
    pair.accepted.reset();
    while (pair.client->send(Bytes(1000))) {
    }
    CHECK(pair.at_client.closed()->code == ErrorCode::kPeerLost);
  }
  std::signal(SIGPIPE, before);
}

}  // namespace
}  // namespace tandem::net
