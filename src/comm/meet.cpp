#include "comm/meet.h"

#include <poll.h>

#include <algorithm>
#include <optional>

namespace tandem::comm {
namespace {

constexpr std::chrono::milliseconds kFirstRetry{5};
constexpr std::chrono::milliseconds kLongestRetry{200};
constexpr std::chrono::seconds kHandshakeLimit{2};
constexpr size_t kMostPending = 64;

/// A dialled rank on its way.
struct Dialled {
  const Dial* dial = nullptr;
  std::optional<Handshake> handshake = {};
  bool connected = false;
  TimePoint next = {};  // when to try again, or to give this attempt up
  std::chrono::milliseconds wait = kFirstRetry;
  Error reason{.code = ErrorCode::kDeadline, .message = "did not come"};
};

/// A connection from somebody.
struct Accepted {
  Handshake handshake;
  TimePoint until;
};

bool is_refusal(const Error& error) {
  return error.code == ErrorCode::kUnauthorized || error.code == ErrorCode::kConflict;
}

class Session {
 public:
  explicit Session(const Meeting& meeting) : meeting_(meeting) {
    for (const Dial& dial : meeting.dials) dialled_.push_back({.dial = &dial});
  }

  Result<std::map<uint32_t, Fd>> run() {
    while (true) {
      const TimePoint now = clock_.now();
      for (Dialled& dialled : dialled_) step_dial(dialled, now);
      step_accepts(now);
      if (sockets_.size() == meeting_.accepts.size() + meeting_.dials.size()) {
        return std::move(sockets_);
      }
      if (now >= meeting_.until) return missing();
      sleep(now);
    }
  }

 private:
  void step_dial(Dialled& dialled, TimePoint now);
  void retry(Dialled& dialled, TimePoint now, Error reason);
  void step_accepts(TimePoint now);
  bool step_accept(Accepted& accepted, TimePoint now);
  void sleep(TimePoint now);
  Error missing() const;

  const Meeting& meeting_;
  SteadyClock clock_;
  std::vector<Dialled> dialled_;
  std::vector<Accepted> accepted_;
  std::map<uint32_t, Fd> sockets_;
  std::optional<Error> refused_;
};

void Session::retry(Dialled& dialled, TimePoint now, Error reason) {
  dialled.handshake.reset();
  dialled.connected = false;
  // That it refused us, or we it, says more than that it is not there later.
  if (!is_refusal(dialled.reason) || is_refusal(reason)) dialled.reason = std::move(reason);
  dialled.next = now + dialled.wait;
  dialled.wait = std::min(dialled.wait * 2, kLongestRetry);
}

void Session::step_dial(Dialled& dialled, TimePoint now) {
  const Dial& dial = *dialled.dial;
  if (sockets_.contains(dial.rank)) return;
  if (!dialled.handshake) {
    if (now < dialled.next) return;
    auto socket = comm::dial(dial.address);
    if (!socket) return retry(dialled, now, socket.error());
    dialled.handshake.emplace(*std::move(socket), Side::kDialer, meeting_.self, meeting_.secret);
    dialled.next = now + kHandshakeLimit;
  }
  if (now >= dialled.next) {
    return retry(dialled, now, {.code = ErrorCode::kDeadline, .message = "did not answer"});
  }
  if (!dialled.connected) {
    pollfd ready{.fd = dialled.handshake->fd(), .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, 0) <= 0) return;
    if (dial_error(dialled.handshake->fd()) != 0) {
      return retry(dialled, now, {.code = ErrorCode::kDeadline, .message = "is not there"});
    }
    if (auto status = dialled.handshake->begin(); !status) {
      return retry(dialled, now, status.error());
    }
    dialled.connected = true;
  }
  auto state = dialled.handshake->step();
  if (!state) return retry(dialled, now, state.error());
  if (*state == Handshake::State::kPending) return;
  if (dialled.handshake->peer().rank != dial.rank) {
    return retry(dialled, now, {.code = ErrorCode::kConflict, .message = "is another rank"});
  }
  sockets_[dial.rank] = dialled.handshake->release();
}

/// False when the connection is done with, for better or worse.
bool Session::step_accept(Accepted& accepted, TimePoint now) {
  Handshake& handshake = accepted.handshake;
  const auto state = handshake.step();
  if (!state) {
    // Somebody who knows the secret but is of another group is worth telling; a stranger is not.
    if (state.error().code == ErrorCode::kConflict) {
      refused_ = Error{.code = state.error().code,
                       .message = fmt::format("[comm] refused a rank {} that {}",
                                              handshake.peer().rank, state.error().message)};
    }
    return false;
  }
  if (*state == Handshake::State::kPending) return now < accepted.until;
  // A rank that gave up a slow attempt dials again: its last connection counts.
  const uint32_t rank = handshake.peer().rank;
  if (std::ranges::count(meeting_.accepts, rank) > 0) sockets_[rank] = handshake.release();
  return false;
}

void Session::step_accepts(TimePoint now) {
  while (meeting_.listener != nullptr && accepted_.size() < kMostPending) {
    Fd socket = accept_from(*meeting_.listener);
    if (!socket) break;
    Handshake handshake(std::move(socket), Side::kAcceptor, meeting_.self, meeting_.secret);
    if (handshake.begin()) accepted_.push_back({std::move(handshake), now + kHandshakeLimit});
  }
  std::erase_if(accepted_, [&](Accepted& accepted) { return !step_accept(accepted, now); });
}

void Session::sleep(TimePoint now) {
  std::vector<pollfd> waits;
  TimePoint until = meeting_.until;
  if (meeting_.listener != nullptr && accepted_.size() < kMostPending) {
    waits.push_back({.fd = meeting_.listener->get(), .events = POLLIN, .revents = 0});
  }
  for (const Accepted& accepted : accepted_) {
    waits.push_back({.fd = accepted.handshake.fd(), .events = POLLIN, .revents = 0});
    until = std::min(until, accepted.until);
  }
  for (const Dialled& dialled : dialled_) {
    if (sockets_.contains(dialled.dial->rank)) continue;
    until = std::min(until, dialled.next);
    if (!dialled.handshake) continue;
    const short events = dialled.connected ? POLLIN : POLLOUT;
    waits.push_back({.fd = dialled.handshake->fd(), .events = events, .revents = 0});
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
  poll(waits.data(), waits.size(), static_cast<int>(std::max<int64_t>(left, 0)));
}

Error Session::missing() const {
  for (const Dialled& dialled : dialled_) {
    const Dial& dial = *dialled.dial;
    if (sockets_.contains(dial.rank)) continue;
    return {.code = dialled.reason.code,
            .message = fmt::format("[comm] rank {} ({}) {}", dial.rank, dial.where,
                                   dialled.reason.message)};
  }
  if (refused_) return *refused_;
  std::string who;
  for (const uint32_t rank : meeting_.accepts) {
    if (!sockets_.contains(rank)) who += fmt::format(" {}", rank);
  }
  return {.code = ErrorCode::kDeadline,
          .message = fmt::format("[comm] rank(s){} did not come", who)};
}

}  // namespace

Result<std::map<uint32_t, Fd>> meet(const Meeting& meeting) { return Session(meeting).run(); }

}  // namespace tandem::comm
