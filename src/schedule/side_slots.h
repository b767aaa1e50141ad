// What nodes of the prefix index hold besides their page: window pages, or recurrent state.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "schedule/page_pool.h"

namespace tandem::schedule {

/// A pool of slots of which a node can hold one: `node` is the node's page. A slot that no request
/// references stays with its node until it is evicted: those that only low priority requests used
/// before any others, least recently used first. A node without its slot is still there, but what
/// needs the slot cannot begin at it. One thread.
class SideSlots {
 public:
  using Slot = uint32_t;

  SideSlots(uint32_t slots, uint32_t nodes);

  /// A slot with one reference: a free one, else an evicted one; nothing when all are referenced.
  /// Those that normal requests used are evicted only when allowed.
  std::optional<Slot> allocate(bool evict_normal);
  void retain(Slot slot, bool normal);
  void release(Slot slot);

  /// Lets the node hold a slot that the caller references, unless it has one already or the slot is
  /// another node's.
  void offer(PageId node, Slot slot, bool normal);
  std::optional<Slot> of(PageId node) const;
  /// The node holds none any longer.
  void detach(PageId node);

  /// Whether there are any at all: else no node needs one.
  bool exist() const { return pool_.total() > 0; }
  const PagePool& pool() const { return pool_; }

  /// Whether the links, the pool and the order of eviction agree. Linear in slots and nodes.
  bool is_consistent() const;

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFU;

  struct Held {
    PageId node = kNone;
    bool normal = false;
    uint64_t last_used = 0;
  };

  using Order = std::tuple<bool, uint64_t, Slot>;  // what is evicted first comes first

  Order order_of(Slot slot) const { return {held_[slot].normal, held_[slot].last_used, slot}; }

  PagePool pool_;
  std::vector<Held> held_;     // by slot
  std::vector<Slot> slot_of_;  // by node
  std::set<Order> evictable_;  // slots that only a node holds
  uint64_t uses_ = 0;
};

}  // namespace tandem::schedule
