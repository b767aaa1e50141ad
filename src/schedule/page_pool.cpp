#include "schedule/page_pool.h"

#include "base/check.h"

namespace tandem::schedule {

PagePool::PagePool(uint32_t total) : pages_(total) {
  free_.reserve(total);
  for (uint32_t page = total; page > 0; --page) free_.push_back(page - 1);
}

std::optional<PageId> PagePool::allocate() {
  if (free_.empty()) return std::nullopt;
  const PageId page = free_.back();
  free_.pop_back();
  pages_[page].references = 1;
  ++referenced_;
  return page;
}

void PagePool::retain(PageId page) {
  Page& at = pages_[page];
  TANDEM_CHECK(at.references > 0 || at.kept, "page {} is free", page);
  if (at.references++ > 0) return;
  --cached_;
  ++referenced_;
}

bool PagePool::release(PageId page) {
  Page& at = pages_[page];
  TANDEM_CHECK(at.references > 0, "page {} is not referenced", page);
  if (--at.references > 0) return false;
  --referenced_;
  if (at.kept) {
    ++cached_;
  } else {
    free_.push_back(page);
  }
  return true;
}

void PagePool::keep(PageId page) {
  TANDEM_CHECK(pages_[page].references > 0 && !pages_[page].kept, "page {}", page);
  pages_[page].kept = true;
}

void PagePool::drop(PageId page) {
  Page& at = pages_[page];
  TANDEM_CHECK(at.kept, "page {} is not kept", page);
  at.kept = false;
  if (at.references > 0) return;
  --cached_;
  free_.push_back(page);
}

}  // namespace tandem::schedule
