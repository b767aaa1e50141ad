#include "cluster/follower_links.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace tandem::cluster {

Result<std::unique_ptr<FollowerLinks>> FollowerLinks::listen(const std::string& address) {
  std::unique_ptr<FollowerLinks> links(new FollowerLinks);
  FollowerLinks* self = links.get();
  auto listener = net::listen_links(
      address, {}, [self](std::unique_ptr<net::Link> link) { self->add(std::move(link)); });
  if (!listener) return listener.error();
  links->listener_ = *std::move(listener);
  links->address_ = links->listener_->address();
  return links;
}

FollowerLinks::~FollowerLinks() {
  listener_.reset();
  close();
}

void FollowerLinks::close() {
  if (listener_) (void)listener_->set_secret({});
  std::vector<std::unique_ptr<Peer>> dropped;
  {
    const std::lock_guard lock(mutex_);
    open_ = false;
    aborted_ = false;
    followers_.clear();
    dropped = std::move(peers_);
    peers_.clear();
  }
  // Outside the lock: this waits for handlers that may want it.
  for (auto& peer : dropped) peer->link.reset();
}

Status FollowerLinks::meet(const plan::Form& group, Handlers handlers) {
  {
    const std::lock_guard lock(mutex_);
    TANDEM_CHECK(!open_, "close() comes before meet()");
    group_ = group;
    handlers_ = std::move(handlers);
    followers_.assign(group.size - 1, nullptr);
    open_ = true;
  }
  if (group.size == 1) return {};
  if (Status secret = listener_->set_secret(group.secret); !secret) return secret;
  std::unique_lock lock(mutex_);
  const bool done = changed_.wait_for(lock, group.timeout, [this] {
    return aborted_ || is_complete() ||
           std::any_of(followers_.begin(), followers_.end(), [](Peer* p) { return p && p->lost; });
  });
  if (aborted_) return Error{ErrorCode::kPeerLost, "the group was aborted before it met"};
  if (!done) {
    return Error{ErrorCode::kDeadline,
                 fmt::format("epoch {}: no plan link from rank {} within {} ms", group.epoch,
                             missing(), group.timeout.count())};
  }
  for (const Peer* peer : followers_) {
    if (peer && peer->lost) {
      return Error{ErrorCode::kPeerLost, fmt::format("rank {} left its plan link", peer->rank)};
    }
  }
  return {};
}

Status FollowerLinks::send(std::span<const std::byte> frame) {
  const std::lock_guard lock(mutex_);
  for (Peer* peer : followers_) {
    if (!peer) return Error{ErrorCode::kPeerLost, "a follower has not joined"};
    if (const Status sent = peer->link->send(frame); !sent) {
      // The same words as where the link's end is seen first.
      const bool is_lost = sent.error().code == ErrorCode::kPeerLost;
      return Error{sent.error().code,
                   fmt::format("rank {} {}: {}", peer->rank, is_lost ? "is lost" : "takes no plans",
                               sent.error().message)};
    }
  }
  return {};
}

void FollowerLinks::abort() {
  (void)listener_->set_secret({});
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  changed_.notify_all();
}

void FollowerLinks::add(std::unique_ptr<net::Link> link) {
  auto owned = std::make_unique<Peer>();
  Peer* peer = owned.get();
  peer->link = std::move(link);
  const std::lock_guard lock(mutex_);
  if (!open_) return;
  peers_.push_back(std::move(owned));
  peer->link->start(
      {.on_frame = [this, peer](std::span<const std::byte> bytes) { receive(*peer, bytes); },
       .on_closed = [this, peer](Error why) { lose(*peer, std::move(why)); }});
}

void FollowerLinks::receive(Peer& peer, std::span<const std::byte> bytes) {
  auto frame = plan::decode_frame(bytes);
  Status good;
  uint32_t rank = 0;
  std::function<void(uint32_t, plan::Frame)> deliver;
  {
    const std::lock_guard lock(mutex_);
    if (!open_ || peer.lost) return;
    rank = peer.rank;
    if (!frame) {
      good = frame.error();
    } else if (rank == 0) {
      good = join(peer, *frame);
    } else {
      deliver = handlers_.on_frame;
    }
  }
  if (deliver) return deliver(rank, *std::move(frame));
  if (good) return;
  TANDEM_LOG(kWarn, "dropped the plan link of {}: {}", peer.link->peer(), good.error().message);
  lose(peer, good.error());
  peer.link->close();
}

Status FollowerLinks::join(Peer& peer, const plan::Frame& frame) {
  const auto* hello = std::get_if<plan::Join>(&frame);
  if (!hello) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("expected Join on a plan link, got {}", plan::name(frame))};
  }
  if (hello->epoch != group_.epoch || hello->rank == 0 || hello->rank >= group_.size) {
    return Error{ErrorCode::kConflict,
                 fmt::format("rank {} of epoch {} wants to join epoch {} of {} ranks", hello->rank,
                             hello->epoch, group_.epoch, group_.size)};
  }
  Peer*& place = followers_[hello->rank - 1];
  if (place) {
    return Error{ErrorCode::kConflict, fmt::format("rank {} has joined already", hello->rank)};
  }
  peer.rank = hello->rank;
  place = &peer;
  changed_.notify_all();
  return {};
}

void FollowerLinks::lose(Peer& peer, Error why) {
  std::function<void(uint32_t, Error)> report;
  {
    const std::lock_guard lock(mutex_);
    if (!open_ || std::exchange(peer.lost, true)) return;
    if (peer.rank != 0) report = handlers_.on_lost;
    changed_.notify_all();
  }
  if (report) report(peer.rank, std::move(why));
}

bool FollowerLinks::is_complete() const {
  return std::none_of(followers_.begin(), followers_.end(), [](Peer* p) { return p == nullptr; });
}

std::string FollowerLinks::missing() const {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < followers_.size(); ++i) {
    if (!followers_[i]) ranks.push_back(i + 1);
  }
  return fmt::format("{}", fmt::join(ranks, ", "));
}

}  // namespace tandem::cluster
