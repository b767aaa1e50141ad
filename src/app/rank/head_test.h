// A head for tests of ranks: takes their links and lets the test's thread talk frame by frame.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/link_listener.h"
#include "plan/frames.h"

namespace tandem::app::testing {

using namespace std::chrono_literals;

inline std::vector<std::byte> control_secret() { return std::vector<std::byte>(32, std::byte{42}); }

class TestHead {
 public:
  TestHead() {
    auto made = net::listen_links("127.0.0.1:0", {.link = {.secret = control_secret()}},
                                  [this](std::unique_ptr<net::Link> l) { take(std::move(l)); });
    REQUIRE(made);
    listener_ = *std::move(made);
  }
  ~TestHead() {
    listener_.reset();
    drop_all();
  }

  const std::string& address() const { return listener_->address(); }

  /// Waits for a rank's Hello.
  plan::Hello hello(uint32_t rank) {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, 30s, [&] { return by_rank_.contains(rank); }));
    return by_rank_[rank]->hello;
  }

  void send(uint32_t rank, const plan::Frame& frame) {
    const std::lock_guard lock(mutex_);
    (void)by_rank_.at(rank)->link->send(plan::encode(frame));
  }

  /// The rank's next frame of this type, which passes the test; others before it are dropped.
  template <class T, class Passes>
  std::optional<T> next(uint32_t rank, const Passes& passes, std::chrono::milliseconds time = 30s) {
    std::unique_lock lock(mutex_);
    Peer& peer = *by_rank_.at(rank);
    const auto deadline = std::chrono::steady_clock::now() + time;
    for (;;) {
      while (!peer.frames.empty()) {
        const plan::Frame frame = std::move(peer.frames.front());
        peer.frames.pop_front();
        if (const T* found = std::get_if<T>(&frame); found && passes(*found)) return *found;
      }
      if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) return std::nullopt;
    }
  }
  template <class T>
  std::optional<T> next(uint32_t rank) {
    return next<T>(rank, [](const T&) { return true; });
  }

  void drop_all() {
    std::vector<std::unique_ptr<Peer>> dropped;
    {
      const std::lock_guard lock(mutex_);
      dropped = std::move(peers_);
      peers_.clear();
      by_rank_.clear();
    }
  }

  /// The rank is gone; another process may take its number.
  void forget(uint32_t rank) {
    const std::lock_guard lock(mutex_);
    by_rank_.erase(rank);
  }

  /// Tells all ranks to form, and waits until all are ready.
  void form(uint32_t epoch, uint32_t size) {
    plan::Form form{.epoch = epoch, .size = size};
    for (uint32_t rank = 0; rank < size; ++rank) {
      form.plan_addresses.push_back(hello(rank).plan_address);
      form.data_addresses.push_back(hello(rank).data_address);
    }
    form.secret.assign(32, static_cast<std::byte>(epoch));
    for (uint32_t rank = 0; rank < size; ++rank) {
      form.rank = rank;
      send(rank, form);
    }
    for (uint32_t rank = 0; rank < size; ++rank) {
      CAPTURE(rank);
      REQUIRE(next<plan::Ready>(rank, [&](const plan::Ready& r) { return r.epoch == epoch; }));
    }
  }
  void abort(uint32_t epoch, uint32_t size) {
    for (uint32_t rank = 0; rank < size; ++rank) send(rank, plan::Abort{.epoch = epoch});
    for (uint32_t rank = 0; rank < size; ++rank) {
      CAPTURE(rank);
      REQUIRE(next<plan::Aborted>(rank, [&](const plan::Aborted& a) { return a.epoch == epoch; }));
    }
  }

  /// The request's tokens until its last event, or until `at_most` came.
  std::vector<gen::TokenId> tokens(gen::RequestId id, size_t at_most = 1u << 30) {
    std::vector<gen::TokenId> all;
    while (all.size() < at_most) {
      const auto report = next<plan::Report>(0);
      REQUIRE(report);
      for (const gen::Event& event : report->events) {
        if (event.request != id) continue;
        if (const auto* drawn = std::get_if<gen::Tokens>(&event.body)) {
          for (const gen::Token& token : drawn->tokens) all.push_back(token.id);
        }
        if (event.is_last()) {
          CHECK(std::holds_alternative<gen::Finished>(event.body));
          return all;
        }
      }
    }
    return all;
  }

 private:
  struct Peer {
    std::unique_ptr<net::Link> link;
    plan::Hello hello;
    std::deque<plan::Frame> frames;
  };

  void take(std::unique_ptr<net::Link> link) {
    const std::lock_guard lock(mutex_);
    peers_.push_back(std::make_unique<Peer>());
    Peer* peer = peers_.back().get();
    peer->link = std::move(link);
    peer->link->start({.on_frame = [this, peer](std::span<const std::byte> bytes) {
      auto frame = plan::decode_frame(bytes);
      const std::lock_guard guard(mutex_);
      if (!frame) return;
      if (const auto* hello = std::get_if<plan::Hello>(&*frame)) {
        peer->hello = *hello;
        by_rank_[hello->rank] = peer;
      } else {
        peer->frames.push_back(*std::move(frame));
      }
      changed_.notify_all();
    }});
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::map<uint32_t, Peer*> by_rank_;
  std::unique_ptr<net::LinkListener> listener_;
};

inline gen::Request request(gen::RequestId id, uint32_t max_tokens) {
  gen::Request made;
  made.id = id;
  made.prompt = {3, 1, 4, 1, 5, 9, 2, 6};
  made.sampling.temperature = 0.8F;
  made.sampling.seed = 7;
  made.max_tokens = max_tokens;
  return made;
}

}  // namespace tandem::app::testing
