// What running sequences have besides their pages: window pages and recurrent state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedule/prefix_index.h"
#include "schedule/sequence.h"

namespace tandem::schedule {

struct SidesOptions {
  uint32_t page_tokens = 0;
  uint32_t window = 0;       // positions that layers with a window see; 0: there are none
  uint32_t state_step = 0;   // tokens between two states that are kept
  uint32_t step_tokens = 0;  // of a row, at most
  bool keeps_states = true;  // for others to begin with
};

/// Gives sequences what layers of these kinds need, and keeps it in the index for others. Does
/// nothing for a model that has no such layers. A sequence is begun when it is admitted, then each
/// of its rows covers, reads and keeps; when it stops running it offers what it has, and drops it.
class Sides {
 public:
  /// The index must live as long.
  Sides(PrefixIndex& index, SidesOptions options) : index_(index), options_(options) {}

  /// Window pages that a sequence of at most `limit` positions holds at once, at most.
  uint32_t window_need(uint32_t limit) const;

  /// A slot for its state; false when there is none, and nothing is held.
  bool begin(Sequence& sequence);

  /// Whether a sequence that takes these full pages of the index can go on at position `end`, so
  /// far as windows go: at the end of the path, or in a child of it.
  bool sees_window(const Sequence& sequence, std::span<const PageId> path, uint32_t end) const;
  /// The same at the path's end, for all kinds of layers.
  bool can_go_on(const Sequence& sequence, std::span<const PageId> path) const;
  /// Takes window pages of the path's nodes that a row at `end` sees. Requires sees_window(), and
  /// that the path is not yet among the sequence's pages.
  void take_windows(Sequence& sequence, std::span<const PageId> path, uint32_t end);
  /// The next row begins with the node's state, where the model has any. Requires that it is there.
  void restore(Sequence& sequence, PageId node);

  /// Window pages up to position `end`. Requires that window_need() was reserved.
  void cover(Sequence& sequence, uint32_t end);
  /// A window page that is a copy of the node's, for the sequence's next page.
  std::optional<plan::PageCopy> copy_window(Sequence& sequence, PageId node);
  /// Gives up window pages that its next row does not see. Not while a plan is made that may hold a
  /// row of it.
  void leave_behind(Sequence& sequence);

  /// Where its next row finds the state before it; nothing for its first position.
  std::optional<SlotId> state_before(Sequence& sequence);
  /// The states that a row over positions [from, computed) of it leaves for others.
  std::vector<plan::StateSave> keep_states(Sequence& sequence, uint32_t from);

  /// Lets the node that holds its positions up to `end`, in the last page of them, have what the
  /// sequence has of it.
  void offer(Sequence& sequence, PageId node, uint32_t end);
  /// The same for the node that ends where the sequence does.
  void offer_end(Sequence& sequence, PageId node);
  void drop(Sequence& sequence);

  /// Window pages given up so far because the next row of their sequence sees none of them.
  uint64_t window_pages_left() const { return window_pages_left_; }

  /// What the plan reads or writes may be evicted again: it is made.
  void end_plan();

 private:
  uint32_t first_seen_page(uint32_t position) const;
  /// Gives up window pages in front of page `first`.
  void release_before(Sequence& sequence, uint32_t first);
  std::optional<SlotId> keep(Sequence& sequence, uint32_t position);
  bool keeps_at(const Sequence& sequence, uint32_t position) const;

  PrefixIndex& index_;
  const SidesOptions options_;
  std::vector<PageId> pinned_windows_;  // sources of this plan's copies
  std::vector<SlotId> pinned_states_;   // read or written by this plan
  uint64_t window_pages_left_ = 0;
};

}  // namespace tandem::schedule
