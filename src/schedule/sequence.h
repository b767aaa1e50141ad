// Sequence: one request's tokens, the pages that hold their keys and values, and where it stands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "gen/request.h"
#include "schedule/prefix_index.h"

namespace tandem::schedule {

using plan::SlotId;

/// The recurrent state after so many positions.
struct Snapshot {
  uint32_t position = 0;
  SlotId slot = 0;
};

/// Owned by the scheduler; the engine reads it and appends tokens.
struct Sequence {
  gen::Request request;  // prompt and emitted are moved into tokens
  uint64_t serial = 0;   // unique in the scheduler's life, also when an id comes again
  TimePoint arrival;
  uint32_t client = 0;  // index of request.client

  std::optional<plan::Draw> draw;  // how the device draws its tokens; none: the host does

  std::vector<TokenId> tokens;  // prompt and answer, as far as they are known
  uint32_t prompt = 0;          // tokens of the prompt
  uint32_t unknown = 0;         // tokens after those, drawn by rows in flight
  uint32_t limit = 0;           // both together never exceed this
  uint32_t shared = 0;          // leading positions that it may have of others, and they of it

  bool goes_on = false;       // it came with a part of its answer: before new ones
  bool running = false;       // else waiting, for the first time or paused
  bool started = false;       // a first row was planned
  bool awaits_token = false;  // no further row before all its tokens are known
  uint64_t order = 0;         // of admission; 0 before. Kept over pauses

  uint32_t computed = 0;             // positions whose keys and values are there or in flight
  std::vector<PageId> pages;         // page table of those positions, empty unless running
  uint32_t target_pages = 0;         // reserved at admission
  uint32_t window_first = 0;         // the page that window_pages begins with
  std::vector<PageId> window_pages;  // of layers that see a window: what rows still see
  std::optional<SlotId> state;       // its own recurrent state, after `computed` positions
  std::optional<SlotId> restored;    // or a prefix's, which its next row begins with
  std::vector<Snapshot> snapshots;   // states that are no node's yet
  Place place = 0;                   // deepest of its pages in the index
  uint32_t indexed = 0;              // leading pages that are in the index
  bool fresh = false;                // no row since it was last admitted
  bool attached = false;             // further full pages may be added below place

  uint32_t blocked_need = 0;  // pages it lacked when last refused admission
  uint64_t planned_in = 0;    // the last plan with a row of it

  gen::Priority priority() const { return request.priority; }
  uint32_t length() const { return static_cast<uint32_t>(tokens.size()); }
  uint32_t answer() const { return length() - prompt; }
  /// One generated token is to be computed, known or not, and nothing else.
  bool decodes() const { return computed >= prompt && computed + 1 == length() + unknown; }
  /// A row that computes one more position would draw a token past the end.
  bool is_drawn_out() const { return length() + unknown == limit; }
  /// Known tokens to be computed.
  uint32_t remaining() const { return length() - std::min(length(), computed); }
  /// Positions that are computed, or in flight, from known tokens: what others may reuse.
  uint32_t shareable() const { return std::min({length(), computed, shared}); }
};

}  // namespace tandem::schedule
