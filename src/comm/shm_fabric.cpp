#include "comm/shm_fabric.h"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "comm/wait_word.h"

namespace tandem::comm {
namespace {

constexpr std::chrono::microseconds kSpin{30};
constexpr std::chrono::milliseconds kLookEvery{50};
// What moves at once: the reader works on one piece while the writer fills the next.
constexpr size_t kPiece = size_t{32} << 10U;

/// In short pieces: the C library hands long ones to the processor's string move, which is 15 times
/// slower on some (measured on Zen 3) unless both sides are aligned alike.
void copy(std::byte* to, const std::byte* from, size_t bytes) {
  constexpr size_t kStep = 1024;
  for (; bytes > kStep; bytes -= kStep, to += kStep, from += kStep) std::memcpy(to, from, kStep);
  std::memcpy(to, from, bytes);
}

void copy_in(Ring& ring, uint64_t at, std::span<const std::byte> from) {
  if (from.empty()) return;
  const size_t begin = at % Ring::kCapacity;
  const size_t first = std::min(from.size(), Ring::kCapacity - begin);
  copy(ring.data + begin, from.data(), first);
  if (first < from.size()) copy(ring.data, from.data() + first, from.size() - first);
}

void copy_out(const Ring& ring, uint64_t at, std::span<std::byte> to) {
  if (to.empty()) return;
  const size_t begin = at % Ring::kCapacity;
  const size_t first = std::min(to.size(), Ring::kCapacity - begin);
  copy(to.data(), ring.data + begin, first);
  if (first < to.size()) copy(to.data() + first, ring.data, to.size() - first);
}

Error corrupt_ring(uint32_t peer) {
  return {.code = ErrorCode::kCorrupt,
          .message = fmt::format("[comm] rank {} left its ring in an impossible state", peer)};
}

}  // namespace

ShmFabric::ShmFabric(uint32_t rank,
                     uint32_t size,
                     uint32_t epoch,
                     std::shared_ptr<Segment> segment,
                     std::map<uint32_t, Fd> owners)
    : Fabric(rank, size, epoch),
      segment_(std::move(segment)),
      owners_(std::move(owners)),
      gone_(size, false),
      spin_(size > usable_cores() ? std::chrono::nanoseconds{0} : kSpin) {}

void ShmFabric::ring_bell(uint32_t rank) {
  Bell& bell = segment_->bell(rank);
  bell.count.fetch_add(1, std::memory_order_seq_cst);
  if (bell.sleeping.load(std::memory_order_seq_cst) != 0) wake_word(bell.count);
}

Result<size_t> ShmFabric::write(uint32_t peer,
                                std::span<const std::byte> head,
                                std::span<const std::byte> body) {
  Ring& ring = segment_->ring(rank(), peer);
  const uint64_t at = ring.head.load(std::memory_order_relaxed);
  const uint64_t used = at - ring.tail.load(std::memory_order_acquire);
  if (used > Ring::kCapacity) return corrupt_ring(peer);
  if (gone_[peer]) return gone_peer(peer);
  const size_t room = std::min<size_t>(Ring::kCapacity - used, kPiece);
  const size_t from_head = std::min(head.size(), room);
  const size_t from_body = std::min(body.size(), room - from_head);
  if (from_head + from_body == 0) return size_t{0};
  copy_in(ring, at, head.first(from_head));
  copy_in(ring, at + from_head, body.first(from_body));
  ring.head.store(at + from_head + from_body, std::memory_order_release);
  ring_bell(peer);
  return from_head + from_body;
}

Result<size_t> ShmFabric::read(uint32_t peer,
                               std::span<std::byte> head,
                               std::span<std::byte> body) {
  Ring& ring = segment_->ring(peer, rank());
  const bool gone = gone_[peer];  // before the look: what it wrote while alive is still read
  const uint64_t at = ring.tail.load(std::memory_order_relaxed);
  const uint64_t there = ring.head.load(std::memory_order_acquire) - at;
  if (there > Ring::kCapacity) return corrupt_ring(peer);
  const size_t most = std::min<size_t>(there, kPiece);
  const size_t to_head = std::min(head.size(), most);
  const size_t to_body = std::min(body.size(), most - to_head);
  if (to_head + to_body == 0) {
    if (gone) return gone_peer(peer);
    return size_t{0};
  }
  copy_out(ring, at, head.first(to_head));
  copy_out(ring, at + to_head, body.first(to_body));
  ring.tail.store(at + to_head + to_body, std::memory_order_release);
  ring_bell(peer);
  return to_head + to_body;
}

uint32_t ShmFabric::ticket() {
  return segment_->bell(rank()).count.load(std::memory_order_acquire);
}

void ShmFabric::wait(uint32_t ticket,
                     std::span<const Interest> /*interests*/,
                     std::chrono::milliseconds longest) {
  Bell& bell = segment_->bell(rank());
  bell.sleeping.store(1, std::memory_order_seq_cst);
  wait_word(bell.count, ticket, longest);
  bell.sleeping.store(0, std::memory_order_relaxed);
  if (clock_.now() - looked_ >= kLookEvery) look_for_the_dead();
}

void ShmFabric::look_for_the_dead() {
  looked_ = clock_.now();
  for (const auto& [peer, owner] : owners_) {
    pollfd look{.fd = owner.get(), .events = POLLIN, .revents = 0};
    if (poll(&look, 1, 0) > 0) gone_[peer] = true;  // nothing is ever sent here: it was closed
  }
}

void ShmFabric::tell(Fault fault) {
  uint32_t none = 0;
  segment_->fault().compare_exchange_strong(none, static_cast<uint32_t>(fault));
  for (uint32_t peer = 0; peer < size(); ++peer) ring_bell(peer);
}

Fault ShmFabric::told() const {
  return static_cast<Fault>(segment_->fault().load(std::memory_order_acquire));
}

}  // namespace tandem::comm
