#include "comm/meet.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>

#include "base/clock.h"
#include "comm/ranks_test.h"
#include "comm/transport.h"

namespace tandem::comm {
namespace {

using std::chrono::milliseconds;

/// Where rank 0 of the group can be dialled.
Address door(const Meetup& meetup, Kind kind) {
  return kind == Kind::kTcp ? *tcp_address(meetup.addresses()[0]) : local_address(meetup.name());
}

/// A stranger's connection, as soon as somebody listens.
Fd barge_in(const Address& address) {
  while (true) {
    auto socket = dial(address);
    if (socket) {
      pollfd ready{.fd = socket->get(), .events = POLLOUT, .revents = 0};
      poll(&ready, 1, 1000);
      if (dial_error(socket->get()) == 0) return *std::move(socket);
    }
    poll(nullptr, 0, 1);
  }
}

/// Whether the other side closes the connection within five seconds.
bool closes(const Fd& socket) {
  std::byte bytes[256];
  while (true) {
    pollfd ready{.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, 5000) != 1) return false;
    if (recv(socket.get(), bytes, sizeof bytes, 0) <= 0) return true;  // end of stream, or reset
  }
}

std::string outcome(const Options& options) {
  auto group = connect(options);
  if (!group) return std::string(name(group.error().code)) + ": " + group.error().message;
  float value = 1;
  const auto status = (*group)->all_sum(&value, 1, Dtype::kFloat32);
  if (!status) return status.error().message;
  return value == static_cast<float>(options.size) ? kFine : "wrong sum";
}

}  // namespace

TEST_CASE("handshake: only the same secret, another side and a fresh nonce are believed") {
  const std::vector<std::byte> secret(32, std::byte{1});
  const std::vector<std::byte> wrong(32, std::byte{2});
  const Hello self{.epoch = 3, .rank = 0, .size = 2};
  const Hello other{.epoch = 3, .rank = 1, .size = 2};
  const auto run = [&](Side side, const Hello& hello, std::span<const std::byte> theirs) {
    auto ends = *socket_pair();
    Handshake one(std::move(ends.first), Side::kAcceptor, self, secret);
    Handshake two(std::move(ends.second), side, hello, theirs);
    REQUIRE(one.begin());
    REQUIRE(two.begin());
    (void)one.step();
    (void)two.step();
    const auto state = one.step();
    return state ? (*state == Handshake::State::kDone ? "done" : "pending")
                 : name(state.error().code);
  };
  CHECK(std::string(run(Side::kDialer, other, secret)) == "done");
  CHECK(std::string(run(Side::kDialer, other, wrong)) == "unauthorized");
  CHECK(std::string(run(Side::kAcceptor, other, secret)) == "unauthorized");
  Hello old = other;
  old.epoch = 2;
  CHECK(std::string(run(Side::kDialer, old, secret)) == "conflict");
}

TEST_CASE("handshake: a peer that sends our own bytes back is a stranger") {
  const std::vector<std::byte> secret(32, std::byte{1});
  auto ends = *socket_pair();
  const Fd mirror = std::move(ends.second);
  Handshake one(std::move(ends.first), Side::kAcceptor, {.epoch = 1, .size = 2}, secret);
  REQUIRE(one.begin());
  Result<Handshake::State> state = Handshake::State::kPending;
  while (state && *state == Handshake::State::kPending) {
    std::byte bytes[256];
    const ssize_t got = recv(mirror.get(), bytes, sizeof bytes, 0);
    if (got > 0) REQUIRE(send(mirror.get(), bytes, static_cast<size_t>(got), kNoSignal) == got);
    state = one.step();
  }
  REQUIRE(!state);
  CHECK(state.error().code == ErrorCode::kUnauthorized);
}

TEST_CASE("meeting: strangers, silent or noisy, do not get in and hold nobody up") {
  for (const Kind kind : kKinds) {
    CAPTURE(std::string(name(kind)));
    Meetup meetup(kind, 3);
    std::atomic<bool> in{false};
    const auto results = on_threads(4, [&](uint32_t rank) -> std::string {
      if (rank == 3) {
        const Address address = door(meetup, kind);
        const Fd silent = barge_in(address);
        const Fd noisy = barge_in(address);
        const std::string noise(4096, 'x');
        (void)!send(noisy.get(), noise.data(), noise.size(), kNoSignal);
        in = true;
        // Refused: the noisy one is closed while the ranks still wait for the last of them.
        return closes(noisy) ? kFine : "a stranger was kept";
      }
      while (rank == 2 && !in) poll(nullptr, 0, 1);
      return outcome(meetup.options(rank));
    });
    CHECK(joined(results) == each(4, kFine));
  }
}

TEST_CASE("meeting: a rank with another secret is told so, and the group names who is missing") {
  for (const Kind kind : kKinds) {
    CAPTURE(std::string(name(kind)));
    Meetup meetup(kind, 2);
    const auto results = on_threads(2, [&](uint32_t rank) {
      Options options = meetup.options(rank);
      options.connect_timeout = milliseconds(700);
      if (rank == 1) options.secret[0] = std::byte{0};
      return outcome(options);
    });
    CHECK(results[0].find("deadline: [comm] rank(s) 1 did not come") == 0);
    CHECK(results[1].find("unauthorized: [comm] rank 0 ") == 0);
  }
}

TEST_CASE("meeting: a rank of the epoch before is refused, and the right one still gets in") {
  for (const Kind kind : kKinds) {
    CAPTURE(std::string(name(kind)));
    Meetup meetup(kind, 2, 2);
    std::atomic<bool> refused{false};
    const auto results = on_threads(3, [&](uint32_t rank) {
      Options options = meetup.options(rank == 0 ? 0 : 1);
      if (rank == 2) {
        options.epoch = 1;
        options.connect_timeout = milliseconds(600);
        std::string result = outcome(options);
        refused = true;
        return result;
      }
      while (rank == 1 && !refused) poll(nullptr, 0, 1);
      return outcome(options);
    });
    CHECK(results[0] == kFine);
    CHECK(results[1] == kFine);
    CHECK(results[2].find("conflict: [comm] rank 0 ") == 0);
    CHECK(results[2].find("is of epoch 2 with 2 ranks, expected epoch 1") != std::string::npos);
  }
}

TEST_CASE("meeting: those who never come are named") {
  for (const Kind kind : kKinds) {
    CAPTURE(std::string(name(kind)));
    Meetup meetup(kind, 3);
    const auto results = on_threads(2, [&](uint32_t rank) {
      Options options = meetup.options(rank);
      options.connect_timeout = milliseconds(400);
      return outcome(options);
    });
    CHECK(results[0].find("deadline: [comm] rank(s) 2 did not come") == 0);
    // Whoever gives up first takes the others with it.
    CHECK((results[1].find("deadline: ") == 0 || results[1].find("peer_lost: ") == 0));
  }
}

TEST_CASE("meeting: a rank that dies while it waits leaves its name free for the next") {
  Meetup meetup(Kind::kSharedMemory, 2);
  Ranks first(1, [&](uint32_t) { return outcome(meetup.options(0)); });
  const Fd seen = barge_in(local_address(meetup.name()));  // it listens
  first.signal(0, SIGKILL);
  CHECK(first.result(0) == "signal 9");
  const auto results = on_threads(2, [&](uint32_t rank) { return outcome(meetup.options(rank)); });
  CHECK(joined(results) == each(2, kFine));
}

TEST_CASE("meeting: wrong options are invalid before anything is tried") {
  Options options{.rank = 2, .size = 2};
  options.secret.resize(8);
  CHECK(connect(options).error().code == ErrorCode::kInvalid);
  options.rank = 0;
  options.secret.clear();
  CHECK(connect(options).error().code == ErrorCode::kInvalid);
  options.secret.resize(8);
  options.kind = Kind::kTcp;
  options.addresses = {"127.0.0.1:0"};
  CHECK(connect(options).error().code == ErrorCode::kInvalid);
  options.rank = 1;
  options.addresses = {"no port", "127.0.0.1:1"};
  CHECK(connect(options).error().code == ErrorCode::kInvalid);
}

}  // namespace tandem::comm
