// The pool's pages as numbers: who holds them, which are free, which keep something reusable.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/figures.h"
#include "plan/step_plan.h"

namespace tandem::schedule {

using plan::PageId;

/// Every page is in one of three states:
///   referenced  held by at least one request (or pinned)
///   cached      held by none, but kept: its content is reusable
///   free
/// free() + cached() + referenced() == total() always. One thread.
class PagePool {
 public:
  explicit PagePool(uint32_t total);

  /// A free page with one reference, or nothing.
  std::optional<PageId> allocate();

  /// One more reference. Requires a page that is not free.
  void retain(PageId page);

  /// One reference less. True when it was the last one: then the page is cached if kept, else free.
  bool release(PageId page);

  /// Marks a referenced page's content as reusable.
  void keep(PageId page);

  /// Its content is no longer reusable: a cached page becomes free. Requires keep() before.
  void drop(PageId page);

  uint32_t references(PageId page) const { return pages_[page].references; }
  bool is_kept(PageId page) const { return pages_[page].kept; }
  bool is_cached(PageId page) const { return is_kept(page) && references(page) == 0; }

  uint32_t total() const { return static_cast<uint32_t>(pages_.size()); }
  uint32_t free() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t cached() const { return cached_; }
  uint32_t referenced() const { return referenced_; }
  plan::PoolFigures figures() const {
    return {.free = free(), .cached = cached(), .referenced = referenced()};
  }

 private:
  struct Page {
    uint32_t references = 0;
    bool kept = false;
  };

  std::vector<Page> pages_;
  std::vector<PageId> free_;  // the last one is taken first
  uint32_t cached_ = 0;
  uint32_t referenced_ = 0;
};

}  // namespace tandem::schedule
