#include "schedule/sides.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tandem::schedule {
namespace {

// States that a sequence keeps beside its own while no node can hold them: others computed the same
// pages. The deepest are worth most.
constexpr size_t kMostSnapshots = 3;

bool is_normal(const Sequence& sequence) { return sequence.priority() == gen::Priority::kNormal; }

}  // namespace

uint32_t Sides::first_seen_page(uint32_t position) const {
  const uint32_t seen_before = options_.window - 1;
  return position < seen_before ? 0 : (position - seen_before) / options_.page_tokens;
}

uint32_t Sides::window_need(uint32_t limit) const {
  const uint64_t most =
      plan::most_window_pages(options_.window, options_.step_tokens, options_.page_tokens);
  const uint64_t whole = (uint64_t{limit} + options_.page_tokens - 1) / options_.page_tokens + 1;
  return static_cast<uint32_t>(std::min(most, whole));
}

bool Sides::begin(Sequence& sequence) {
  if (!index_.states().exist()) return true;
  sequence.state = index_.states().allocate(true);
  return sequence.state.has_value();
}

bool Sides::sees_window(const Sequence& sequence,
                        std::span<const PageId> path,
                        uint32_t end) const {
  if (options_.window == 0) return true;
  const uint32_t own = sequence.indexed;
  const uint32_t first = std::max(own, first_seen_page(end));
  for (auto page = own + static_cast<uint32_t>(path.size()); page > first; --page)
    if (!index_.windows().of(path[page - 1 - own])) return false;
  return true;
}

bool Sides::can_go_on(const Sequence& sequence, std::span<const PageId> path) const {
  const auto pages = sequence.indexed + static_cast<uint32_t>(path.size());
  if (index_.states().exist() && !index_.states().of(path.back())) return false;
  return sees_window(sequence, path, pages * options_.page_tokens);
}

void Sides::take_windows(Sequence& sequence, std::span<const PageId> path, uint32_t end) {
  if (options_.window == 0) return;
  const uint32_t own = sequence.indexed;
  const uint32_t first = first_seen_page(end);
  if (first >= own) {
    const auto held = static_cast<uint32_t>(sequence.window_pages.size());
    release_before(sequence, sequence.window_first + held);
    sequence.window_first = first;
  }
  for (auto page = std::max(own, first); page < own + path.size(); ++page) {
    const PageId there = *index_.windows().of(path[page - own]);
    index_.windows().retain(there, is_normal(sequence));
    sequence.window_pages.push_back(there);
  }
  release_before(sequence, first);  // now, so that no more is held than window_need() counts
}

void Sides::release_before(Sequence& sequence, uint32_t first) {
  const auto held = static_cast<uint32_t>(sequence.window_pages.size());
  const uint32_t left = std::min(held, first - std::min(first, sequence.window_first));
  for (uint32_t i = 0; i < left; ++i) index_.windows().release(sequence.window_pages[i]);
  sequence.window_pages.erase(sequence.window_pages.begin(), sequence.window_pages.begin() + left);
  sequence.window_first += left;
  window_pages_left_ += left;
}

void Sides::restore(Sequence& sequence, PageId node) {
  SideSlots& states = index_.states();
  if (!states.exist()) return;
  states.retain(*states.of(node), is_normal(sequence));
  if (sequence.restored) states.release(*sequence.restored);
  sequence.restored = states.of(node);
}

void Sides::cover(Sequence& sequence, uint32_t end) {
  if (options_.window == 0) return;
  const uint32_t pages = (end + options_.page_tokens - 1) / options_.page_tokens;
  while (sequence.window_first + sequence.window_pages.size() < pages) {
    const auto page = index_.windows().allocate(true);
    TANDEM_CHECK(page, "window pages were reserved at admission");
    sequence.window_pages.push_back(*page);
  }
}

std::optional<plan::PageCopy> Sides::copy_window(Sequence& sequence, PageId node) {
  if (options_.window == 0) return std::nullopt;
  const PageId source = *index_.windows().of(node);
  index_.windows().retain(source, is_normal(sequence));
  pinned_windows_.push_back(source);
  if (sequence.window_pages.empty()) sequence.window_first = sequence.indexed;
  cover(sequence, (sequence.indexed + 1) * options_.page_tokens);
  return plan::PageCopy{.from = source, .to = sequence.window_pages.back()};
}

void Sides::leave_behind(Sequence& sequence) {
  if (options_.window > 0) release_before(sequence, first_seen_page(sequence.computed));
}

std::optional<SlotId> Sides::state_before(Sequence& sequence) {
  if (!index_.states().exist() || sequence.computed == 0) return std::nullopt;
  if (!sequence.restored) return sequence.state;
  pinned_states_.push_back(*sequence.restored);
  return std::exchange(sequence.restored, std::nullopt);
}

bool Sides::keeps_at(const Sequence& sequence, uint32_t position) const {
  if (position > sequence.shared) return false;
  const uint32_t last_page = (sequence.prompt - 1) / options_.page_tokens * options_.page_tokens;
  return position == last_page || position % options_.state_step == 0;
}

std::vector<plan::StateSave> Sides::keep_states(Sequence& sequence, uint32_t from) {
  std::vector<plan::StateSave> saves;
  if (!index_.states().exist() || !options_.keeps_states) return saves;
  const uint32_t page = options_.page_tokens;
  for (uint32_t at = (from / page + 1) * page; at <= sequence.computed; at += page) {
    if (!keeps_at(sequence, at)) continue;
    if (const auto slot = keep(sequence, at)) saves.push_back({.tokens = at - from, .slot = *slot});
  }
  return saves;
}

std::optional<SlotId> Sides::keep(Sequence& sequence, uint32_t position) {
  SideSlots& states = index_.states();
  if (sequence.snapshots.size() == kMostSnapshots) {
    states.release(sequence.snapshots.front().slot);
    sequence.snapshots.erase(sequence.snapshots.begin());
  }
  const auto slot = states.allocate(is_normal(sequence));
  if (!slot) return std::nullopt;
  states.retain(*slot, is_normal(sequence));
  pinned_states_.push_back(*slot);
  sequence.snapshots.push_back({.position = position, .slot = *slot});
  return slot;
}

void Sides::offer(Sequence& sequence, PageId node, uint32_t end) {
  const uint32_t page = (end - 1) / options_.page_tokens;
  // A node of its own that stands for one that a normal request used is that one's in all.
  const bool is_own = page < sequence.pages.size() && sequence.pages[page] == node;
  const bool normal = is_normal(sequence) || (is_own && index_.is_normal(node));
  const uint32_t held = page - std::min(page, sequence.window_first);
  if (page >= sequence.window_first && held < sequence.window_pages.size())
    index_.windows().offer(node, sequence.window_pages[held], normal);
  for (auto at = sequence.snapshots.begin(); at != sequence.snapshots.end();) {
    if (at->position > end) return;
    if (at->position == end) index_.states().offer(node, at->slot, normal);
    index_.states().release(at->slot);
    at = sequence.snapshots.erase(at);
  }
}

void Sides::offer_end(Sequence& sequence, PageId node) {
  const bool has_run = sequence.state && sequence.computed > 0 && !sequence.restored;
  if (has_run) index_.states().offer(node, *sequence.state, is_normal(sequence));
}

void Sides::drop(Sequence& sequence) {
  for (const PageId page : sequence.window_pages) index_.windows().release(page);
  sequence.window_pages.clear();
  sequence.window_first = 0;
  for (const Snapshot& snapshot : sequence.snapshots) index_.states().release(snapshot.slot);
  sequence.snapshots.clear();
  if (sequence.restored) index_.states().release(*sequence.restored);
  if (sequence.state) index_.states().release(*sequence.state);
  sequence.restored.reset();
  sequence.state.reset();
}

void Sides::end_plan() {
  for (const PageId page : pinned_windows_) index_.windows().release(page);
  for (const SlotId slot : pinned_states_) index_.states().release(slot);
  pinned_windows_.clear();
  pinned_states_.clear();
}

}  // namespace tandem::schedule
