#include "control/rank_links.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"

namespace tandem::control {

Result<std::unique_ptr<RankLinks>> RankLinks::listen(const std::string& address,
                                                     std::vector<std::byte> secret,
                                                     Handlers handlers) {
  std::unique_ptr<RankLinks> links(new RankLinks(std::move(handlers)));
  const net::LinkListenerOptions options{.link = {.secret = std::move(secret)}};
  auto listener = net::listen_links(
      address, options,
      [self = links.get()](std::unique_ptr<net::Link> link) { self->adopt(std::move(link)); });
  if (!listener) return listener.error();
  links->listener_ = std::move(*listener);
  return links;
}

// Each link waits for its thread, which may be in a handler: so none of them may need the lock.
RankLinks::~RankLinks() {
  listener_.reset();
  links_.clear();
}

Status RankLinks::send(LinkId id, const plan::Frame& frame) {
  const auto link = find(id);
  if (link == nullptr) return Error{ErrorCode::kNotFound, fmt::format("no link {}", id)};
  return link->send(plan::encode(frame));
}

void RankLinks::close(LinkId id) {
  if (const auto link = find(id)) link->close();
}

void RankLinks::forget(LinkId id) {
  std::shared_ptr<net::Link> link;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  const auto it = links_.find(id);
  if (it == links_.end()) return;
  link = std::move(it->second);
  links_.erase(it);
}

void RankLinks::adopt(std::unique_ptr<net::Link> link) {
  const std::shared_ptr<net::Link> kept = std::move(link);
  LinkId id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_id_++;
    links_.emplace(id, kept);
  }
  net::Link* raw = kept.get();
  kept->start({.on_frame =
                   [this, id, raw](std::span<const std::byte> bytes) {
                     Result<plan::Frame> frame = plan::decode_frame(bytes);
                     if (frame) return handlers_.on_frame(id, std::move(*frame));
                     TANDEM_LOG(kWarn, "{} sent what is no frame: {}", raw->peer(),
                                frame.error().message);
                     raw->close();
                   },
               .on_closed = [this, id](Error why) { handlers_.on_closed(id, std::move(why)); }});
}

std::shared_ptr<net::Link> RankLinks::find(LinkId id) {
  const std::lock_guard lock(mutex_);
  const auto it = links_.find(id);
  return it == links_.end() ? nullptr : it->second;
}

}  // namespace tandem::control
