// How a rank's memory is shared out between pages of all positions, pages of windows and slots of
// recurrent state.
#pragma once

#include <cstdint>
#include <span>

#include "runner/memory.h"

namespace tandem::runner {

/// What is asked of the cache. Numbers that are 0 are chosen by rule.
struct CacheWants {
  uint32_t page_tokens = 0;
  uint32_t step_tokens = 0;   // of the largest step
  uint32_t max_context = 0;   // tokens a request may have
  uint32_t window = 0;        // positions that the widest window shows; 0: no such pages
  bool is_recurrent = false;  // some layers have recurrent state
  uint64_t limit = 0;         // bytes a rank may use; of no meaning where `pages` is set
  uint32_t pages = 0;
  uint32_t window_pages = 0;
  uint32_t state_slots = 0;
  uint32_t state_step = 0;
};

/// As in engine::RunnerInfo.
struct CacheSizes {
  uint32_t pages = 0;
  uint32_t window_pages = 0;
  uint32_t state_slots = 0;
  uint32_t state_step = 0;
};

/// The same on every rank, since it looks at what all of them need.
///
/// Window pages  what 8 rows need, or a quarter of the pages of all positions if that is more, but
///               never more than these and one to copy to. Where no layer sees everything, such
///               pages cost nothing: there are as many as rows can have, and window pages take the
///               memory.
/// State step    a power of two of pages, at least 256 tokens; doubled up to 2048 until a slot is
///               no dearer than pages for so many positions.
/// State slots   two for each of 16 rows, fewer (at least 4) where they would take half of the
///               cache; then states that are kept for prefixes, of a quarter of the rest, but no
///               more than all positions have.
///
/// Errors: kInvalid for numbers that do not fit the model or each other, kTooLarge when some rank
/// has no room for 256 positions, with both numbers.
Result<CacheSizes> cache_sizes(const CacheWants& wants, std::span<const MemoryNeed> ranks);

}  // namespace tandem::runner
