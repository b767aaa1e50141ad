#include "schedule/side_slots.h"

namespace tandem::schedule {

SideSlots::SideSlots(uint32_t slots, uint32_t nodes)
    : pool_(slots), held_(slots), slot_of_(slots == 0 ? 0 : nodes, kNone) {}

std::optional<SideSlots::Slot> SideSlots::allocate(bool evict_normal) {
  if (const auto slot = pool_.allocate()) return slot;
  if (evictable_.empty()) return std::nullopt;
  const auto [normal, last_used, slot] = *evictable_.begin();
  if (normal && !evict_normal) return std::nullopt;
  detach(held_[slot].node);
  return pool_.allocate();
}

void SideSlots::retain(Slot slot, bool normal) {
  if (pool_.is_cached(slot)) evictable_.erase(order_of(slot));
  pool_.retain(slot);
  if (held_[slot].node != kNone) held_[slot].normal |= normal;
}

void SideSlots::release(Slot slot) {
  if (!pool_.release(slot) || !pool_.is_kept(slot)) return;
  held_[slot].last_used = ++uses_;
  evictable_.insert(order_of(slot));
}

void SideSlots::offer(PageId node, Slot slot, bool normal) {
  if (slot_of_[node] != kNone || held_[slot].node != kNone) return;
  slot_of_[node] = slot;
  held_[slot] = {.node = node, .normal = normal};
  pool_.keep(slot);
}

std::optional<SideSlots::Slot> SideSlots::of(PageId node) const {
  if (!exist() || slot_of_[node] == kNone) return std::nullopt;
  return slot_of_[node];
}

void SideSlots::detach(PageId node) {
  const auto slot = of(node);
  if (!slot) return;
  if (pool_.is_cached(*slot)) evictable_.erase(order_of(*slot));
  pool_.drop(*slot);
  slot_of_[node] = kNone;
  held_[*slot] = {};
}

bool SideSlots::is_consistent() const {
  if (pool_.free() + pool_.cached() + pool_.referenced() != pool_.total()) return false;
  uint32_t linked = 0;
  for (PageId node = 0; node < slot_of_.size(); ++node) {
    if (slot_of_[node] == kNone) continue;
    ++linked;
    if (held_[slot_of_[node]].node != node) return false;
  }
  uint32_t kept = 0;
  for (Slot slot = 0; slot < pool_.total(); ++slot) {
    kept += pool_.is_kept(slot);
    if (pool_.is_kept(slot) != (held_[slot].node != kNone)) return false;
    if (pool_.is_cached(slot) != evictable_.contains(order_of(slot))) return false;
  }
  return kept == linked && evictable_.size() == pool_.cached();
}

}  // namespace tandem::schedule
