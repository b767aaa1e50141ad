#include "runner/cache_sizes.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::runner {
namespace {

constexpr uint64_t kMostPositions = uint64_t{1} << 22;  // slots fit 32 bits with much room
constexpr uint64_t kLeastPositions = 256;
constexpr uint64_t kWindowRows = 8;
constexpr uint64_t kStateRows = 16;
constexpr uint64_t kLeastSlots = 4;
constexpr uint64_t kLeastStep = 256;
constexpr uint64_t kMostStep = 2048;

Error misfit(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }

uint64_t row_window_pages(const CacheWants& wants) {
  return plan::most_window_pages(wants.window, wants.step_tokens, wants.page_tokens);
}

class Division {
 public:
  Division(const CacheWants& wants, std::span<const MemoryNeed> ranks)
      : wants_(wants), ranks_(ranks), most_pages_(kMostPositions / wants.page_tokens) {}

  Result<CacheSizes> run() {
    if (wants_.is_recurrent) choose_states();
    const uint64_t pages = wants_.pages != 0 ? wants_.pages : most_that_fit();
    const uint64_t windows = window_pages(pages);
    const uint64_t least = std::min(pages + 1, row_window_pages(wants_));
    const bool has_room =
        pages >= pages_for(kLeastPositions) && (wants_.window == 0 || windows >= least);
    if (wants_.pages == 0 && !has_room) return too_large();
    if (wants_.is_recurrent && wants_.state_slots == 0)
      slots_ = std::min(slots_, live_slots_ + pages * wants_.page_tokens / step_);
    return CacheSizes{.pages = static_cast<uint32_t>(pages),
                      .window_pages = static_cast<uint32_t>(windows),
                      .state_slots = static_cast<uint32_t>(slots_),
                      .state_step = static_cast<uint32_t>(step_)};
  }

 private:
  uint64_t pages_for(uint64_t tokens) const {
    return (tokens + wants_.page_tokens - 1) / wants_.page_tokens;
  }

  /// Bytes that a rank has for its cache.
  uint64_t room(const MemoryNeed& need) const {
    const uint64_t fixed = need.weights + need.workspace;
    return fixed < wants_.limit ? wants_.limit - fixed : 0;
  }

  /// The least over the ranks that have states of how many slots `bytes(rank)` holds.
  template <class F>
  uint64_t slots_in(const F& bytes) const {
    uint64_t least = UINT32_MAX;
    for (const MemoryNeed& need : ranks_)
      if (need.slot > 0) least = std::min(least, bytes(need) / need.slot);
    return least;
  }

  void choose_states() {
    choose_step();
    live_slots_ = 2 * kStateRows;
    slots_ = UINT32_MAX;
    if (wants_.state_slots != 0) {
      slots_ = live_slots_ = wants_.state_slots;
    } else if (wants_.pages == 0) {
      const uint64_t half = slots_in([&](const MemoryNeed& need) { return room(need) / 2; });
      live_slots_ = std::clamp(half, kLeastSlots, live_slots_);
      slots_ = live_slots_ + slots_in([&](const MemoryNeed& need) {
                 const uint64_t live = live_slots_ * need.slot;
                 return live < room(need) ? (room(need) - live) / 4 : 0;
               });
    }
  }

  void choose_step() {
    uint64_t slots = 0, pages = 0;  // bytes over all ranks
    for (const MemoryNeed& need : ranks_) {
      slots += need.slot;
      pages += need.page;
    }
    step_ = wants_.state_step != 0 ? wants_.state_step : wants_.page_tokens;
    if (wants_.state_step != 0) return;
    while (step_ < kLeastStep) step_ *= 2;
    while (2 * step_ <= kMostStep && slots > pages * (step_ / wants_.page_tokens)) step_ *= 2;
  }

  /// Pages of windows beside so many of all positions.
  uint64_t window_pages(uint64_t pages) const {
    if (wants_.window == 0) return 0;
    if (wants_.window_pages != 0) return wants_.window_pages;
    const uint64_t by_rule =
        is_free() && wants_.pages == 0
            ? window_pages_that_fit()
            : std::max(kWindowRows * row_window_pages(wants_), (pages + 3) / 4);
    return std::min(pages + 1, by_rule);
  }

  /// Whether no layer of any rank keeps all positions.
  bool is_free() const {
    return std::ranges::all_of(ranks_, [](const MemoryNeed& need) { return need.page == 0; });
  }

  uint64_t window_pages_that_fit() const {
    uint64_t most = most_pages_;
    for (const MemoryNeed& need : ranks_) {
      const uint64_t slots = slots_bytes(need);
      if (need.window_page > 0)
        most = std::min(most, slots < room(need) ? (room(need) - slots) / need.window_page : 0);
    }
    return most;
  }

  uint64_t slots_bytes(const MemoryNeed& need) const {
    return need.slot == 0 ? 0 : slots_ * need.slot;
  }

  /// Bytes that a rank's cache takes with so many pages of all positions.
  uint64_t bytes(const MemoryNeed& need, uint64_t pages) const {
    return slots_bytes(need) + pages * need.page + window_pages(pages) * need.window_page;
  }

  bool fits(uint64_t pages) const {
    return std::ranges::all_of(ranks_, [&](const MemoryNeed& need) {
      return room(need) > 0 && bytes(need, pages) <= room(need);
    });
  }

  uint64_t most_that_fit() const {
    uint64_t low = 0, high = most_pages_;
    if (is_free()) high = std::min(high, plan::kMostRows * pages_for(wants_.max_context));
    while (low < high) {
      const uint64_t middle = (low + high + 1) / 2;
      if (fits(middle))
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }

  /// Says what the rank that needs most lacks.
  Error too_large() const {
    uint64_t fixed = 0, cache = 0;
    for (const MemoryNeed& need : ranks_) {
      fixed = std::max(fixed, need.weights + need.workspace);
      const uint64_t positions = pages_for(kLeastPositions);
      cache =
          std::max(cache, kLeastSlots * need.slot + positions * need.page +
                              std::min(positions + 1, row_window_pages(wants_)) * need.window_page);
    }
    return {ErrorCode::kTooLarge,
            fmt::format("the model needs {} MB a rank besides its cache and at least {} MB for it, "
                        "and the limit is {} MB",
                        fixed >> 20, cache >> 20, wants_.limit >> 20)};
  }

  const CacheWants& wants_;
  const std::span<const MemoryNeed> ranks_;
  const uint64_t most_pages_;
  uint64_t step_ = 0;
  uint64_t live_slots_ = 0;  // of rows that run
  uint64_t slots_ = 0;
};

Status check_windows(const CacheWants& wants) {
  if (wants.window_pages == 0) return {};
  if (wants.window == 0)
    return misfit("a number of window pages is set, but no layer of the model sees a window");
  const uint64_t context =
      (uint64_t{wants.max_context} + wants.page_tokens - 1) / wants.page_tokens;
  const uint64_t row = std::min(row_window_pages(wants), context + 1);
  if (wants.window_pages < row)
    return misfit(
        fmt::format("{} window pages of {} tokens do not hold a window of {} and a step "
                    "of {}: a row needs {}",
                    wants.window_pages, wants.page_tokens, wants.window, wants.step_tokens, row));
  return {};
}

Status check_states(const CacheWants& wants) {
  if (wants.state_slots == 0 && wants.state_step == 0) return {};
  if (!wants.is_recurrent)
    return misfit("slots of recurrent state are set, but no layer of the model has such a state");
  if (wants.state_slots == 1) return misfit("a row needs 2 slots of recurrent state, and 1 is set");
  if (wants.state_step % wants.page_tokens != 0)
    return misfit(
        fmt::format("recurrent states lie {} tokens apart: that is no multiple of the "
                    "page's {}",
                    wants.state_step, wants.page_tokens));
  return {};
}

}  // namespace

Result<CacheSizes> cache_sizes(const CacheWants& wants, std::span<const MemoryNeed> ranks) {
  if (Status fits = check_windows(wants); !fits) return fits.error();
  if (Status fits = check_states(wants); !fits) return fits.error();
  return Division(wants, ranks).run();
}

}  // namespace tandem::runner
