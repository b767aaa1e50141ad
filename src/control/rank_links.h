// The control links of an instance's ranks, on the head's side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/link.h"
#include "net/link_listener.h"
#include "plan/frames.h"

namespace tandem::control {

using LinkId = uint64_t;

/// Listens, and moves frames. Thread-safe.
class RankLinks {
 public:
  /// Both on the link's own thread, in order; must not block. on_closed once and last, also for a
  /// peer that sent bytes which are no frame.
  struct Handlers {
    std::function<void(LinkId, plan::Frame)> on_frame;
    std::function<void(LinkId, Error)> on_closed;
  };

  /// Errors: kInvalid, kIo.
  static Result<std::unique_ptr<RankLinks>> listen(const std::string& address,
                                                   std::vector<std::byte> secret,
                                                   Handlers handlers);
  ~RankLinks();

  RankLinks(const RankLinks&) = delete;
  RankLinks& operator=(const RankLinks&) = delete;

  /// "host:port" that was really taken.
  const std::string& address() const { return listener_->address(); }

  /// Errors: kNotFound, and those of Link::send.
  Status send(LinkId id, const plan::Frame& frame);

  /// Closes a link; on_closed follows.
  void close(LinkId id);

  /// Lets a closed link go. Not on a link's thread.
  void forget(LinkId id);

 private:
  explicit RankLinks(Handlers handlers) : handlers_(std::move(handlers)) {}
  void adopt(std::unique_ptr<net::Link> link);
  std::shared_ptr<net::Link> find(LinkId id);

  const Handlers handlers_;
  std::mutex mutex_;
  // Guarded by mutex_. Shared, so that a link outlives a send() on another thread.
  std::map<LinkId, std::shared_ptr<net::Link>> links_;
  LinkId next_id_ = 1;
  std::unique_ptr<net::LinkListener> listener_;
};

}  // namespace tandem::control
