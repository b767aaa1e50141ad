// FollowerLinks: rank 0's ends of the plan links, one to each follower.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/link.h"
#include "net/link_listener.h"
#include "plan/frames.h"

namespace tandem::cluster {

/// Listens as long as it lives; lets in the followers of one epoch at a time.
class FollowerLinks {
 public:
  /// Called on the links' threads.
  struct Handlers {
    std::function<void(uint32_t rank, plan::Frame frame)> on_frame;
    std::function<void(uint32_t rank, Error why)> on_lost;  // at most once a rank and epoch
  };

  /// Listens on "host:port". Errors: kInvalid, kIo.
  static Result<std::unique_ptr<FollowerLinks>> listen(const std::string& address);
  ~FollowerLinks();

  /// Where followers connect to, with the port really taken.
  const std::string& address() const { return address_; }

  /// Drops every link (no on_lost follows), lets nobody in, and forgets an abort().
  void close();

  /// Lets in the followers of this group and waits for all of them. After close(). Errors:
  /// kDeadline (names those that did not come), kPeerLost (one left, or abort()).
  Status meet(const plan::Form& group, Handlers handlers);

  /// Sends to every follower. Error: kPeerLost or kBusy, names the rank.
  Status send(std::span<const std::byte> frame);

  /// Any thread: meet() gives up, until close(); nobody is let in any more (peers wait).
  void abort();

 private:
  struct Peer {
    std::unique_ptr<net::Link> link;
    uint32_t rank = 0;  // 0 until its Join came
    bool lost = false;
  };

  FollowerLinks() = default;
  void add(std::unique_ptr<net::Link> link);
  void receive(Peer& peer, std::span<const std::byte> bytes);
  Status join(Peer& peer, const plan::Frame& frame);  // with mutex_ held
  void lose(Peer& peer, Error why);
  bool is_complete() const;     // with mutex_ held
  std::string missing() const;  // with mutex_ held

  std::string address_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  bool open_ = false;
  bool aborted_ = false;
  plan::Form group_;
  Handlers handlers_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Peer*> followers_;  // by rank - 1; null until joined
  // Destroyed first: no link comes after.
  std::unique_ptr<net::LinkListener> listener_;
};

}  // namespace tandem::cluster
