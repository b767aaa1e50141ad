// Which pages a sequence has: reuse, copy on write, room for more, pausing and giving up.
#include <algorithm>

#include "base/check.h"
#include "schedule/scheduler.h"

namespace tandem::schedule {

namespace {

/// Pages behind which a part of one is looked for.
constexpr size_t kMostPartTries = 64;

}  // namespace

uint32_t Scheduler::pages_for(uint32_t tokens) const {
  return (tokens + options_.page_tokens - 1) / options_.page_tokens;
}

std::span<const TokenId> Scheduler::page_span(const Sequence& sequence, uint32_t page) const {
  const std::span<const TokenId> tokens(sequence.tokens);
  return tokens.subspan(size_t{page} * options_.page_tokens, options_.page_tokens);
}

void Scheduler::attach(Sequence& sequence) {
  sequence.place = index_.root(sequence.request.salt);
  sequence.indexed = 0;
  sequence.computed = 0;
  sequence.attached = options_.prefix_reuse;
}

/// The last token is always computed, for its logits.
bool Scheduler::reusable(const Sequence& sequence, uint32_t end) const {
  return end < sequence.length() && end <= sequence.shared;
}

Scheduler::Path Scheduler::follow(const Sequence& sequence) const {
  const uint32_t size = options_.page_tokens;
  Path path;
  Place place = sequence.place;
  for (uint32_t page = sequence.indexed; reusable(sequence, (page + 1) * size); ++page) {
    const auto hit = index_.find(place, page_span(sequence, page), plan_number_);
    path.is_pending = hit.pending;
    if (!hit.page || hit.pending) break;
    path.pages.push_back(*hit.page);
    place = *hit.page;
  }
  return path;
}

/// The pages become the sequence's next ones.
void Scheduler::take(Sequence& sequence, std::span<const PageId> path) {
  for (const PageId page : path) {
    index_.retain(page, sequence.priority());
    sequence.pages.push_back(page);
    sequence.place = page;
  }
  const auto count = static_cast<uint32_t>(path.size());
  sequence.indexed += count;
  sequence.computed += count * options_.page_tokens;
  reused_tokens_ += count * options_.page_tokens;
}

/// Takes full pages of the index as far as every kind of layer can go on from there.
Scheduler::Adoption Scheduler::adopt(Sequence& sequence) {
  const uint32_t size = options_.page_tokens;
  if (!sequence.attached || sequence.computed % size != 0) return Adoption::kDone;
  const Path found = follow(sequence);
  std::span<const PageId> path(found.pages);
  while (!path.empty() && !sides_.can_go_on(sequence, path)) path = path.first(path.size() - 1);
  if (!path.empty()) {
    const auto pages = sequence.indexed + static_cast<uint32_t>(path.size());
    sides_.take_windows(sequence, path, pages * size);
    sides_.restore(sequence, path.back());
    take(sequence, path);
  }
  return found.is_pending ? Adoption::kPending : Adoption::kDone;
}

/// Takes the leading tokens of a page whose later tokens differ, by a copy of it, and the full
/// pages before it.
Scheduler::Before Scheduler::adopt_part(Sequence& sequence) {
  if (!sequence.attached || options_.strict_classes ||
      sequence.computed % options_.page_tokens != 0) {
    return {};
  }
  // Where others computed further full pages, but without the state to go on from, there may still
  // be one inside a page that begins on the way.
  const std::vector<PageId> path = follow(sequence).pages;
  for (size_t tries = 0; tries <= std::min(path.size(), kMostPartTries); ++tries) {
    const auto way = std::span<const PageId>(path).first(path.size() - tries);
    if (const Before before = adopt_part_behind(sequence, way); before.copy) return before;
    if (!index_.states().exist()) break;
  }
  return {};
}

Scheduler::Before Scheduler::adopt_part_behind(Sequence& sequence, std::span<const PageId> path) {
  const uint32_t size = options_.page_tokens;
  const auto begin = sequence.computed + static_cast<uint32_t>(path.size()) * size;
  const uint32_t most = std::min(std::min(size, sequence.length() - begin) - 1,
                                 sequence.shared - std::min(sequence.shared, begin));
  const auto wanted = std::span<const TokenId>(sequence.tokens).subspan(begin, most);
  const Place parent = path.empty() ? sequence.place : path.back();
  const auto part = index_.longest(parent, wanted, plan_number_);
  if (part.tokens == 0 || !sides_.sees_window(sequence, path, begin + part.tokens)) return {};
  index_.retain(part.page, sequence.priority());  // and with it all that lies above
  const auto page = index_.allocate(may_evict_normal(sequence));
  if (!page) {
    index_.release(part.page);
    return {};
  }
  pinned_.push_back(part.page);
  sides_.take_windows(sequence, path, begin + part.tokens);
  take(sequence, path);
  sides_.restore(sequence, part.page);
  const auto window_copy = sides_.copy_window(sequence, part.page);
  sequence.pages.push_back(*page);
  sequence.computed += part.tokens;
  reused_tokens_ += part.tokens;
  return {.copy = plan::PageCopy{.from = part.page, .to = *page}, .window_copy = window_copy};
}

/// Makes the full pages computed so far reusable. Stops for good where another request's page holds
/// the same tokens: what follows is added when the sequence gives up its pages.
void Scheduler::index_pages(Sequence& sequence) {
  const uint32_t size = options_.page_tokens;
  while (sequence.attached && (sequence.indexed + 1) * size <= sequence.shareable()) {
    const PageId page = sequence.pages[sequence.indexed];
    sequence.attached = index_.insert(sequence.place, page_span(sequence, sequence.indexed), page,
                                      plan_number_, sequence.priority());
    if (!sequence.attached) return;
    sequence.place = page;
    ++sequence.indexed;
    sides_.offer(sequence, page, sequence.indexed * size);
  }
}

bool Scheduler::may_evict_normal(const Sequence& sequence) const {
  if (sequence.priority() == gen::Priority::kNormal) return true;
  return std::none_of(running_.begin(), running_.end(), [&](const Sequence* at) {
    return at != &sequence && at->priority() == gen::Priority::kLow;
  });
}

bool Scheduler::ensure_page(Sequence& sequence) {
  do {
    if (const auto page = index_.allocate(may_evict_normal(sequence))) {
      sequence.pages.push_back(*page);
      return true;
    }
  } while (make_room(sequence));
  return false;
}

/// Pauses the youngest row behind `sequence` that is not in this step. When all are in it, the next
/// step begins with pausing one.
bool Scheduler::make_room(const Sequence& sequence) {
  for (auto at = running_.rbegin(); at != running_.rend() && *at != &sequence; ++at) {
    if ((*at)->planned_in == plan_number_) continue;
    pause(**at);
    return true;
  }
  if (!is_youngest(sequence)) promised_room_ = sequence.serial;
  return false;
}

bool Scheduler::make_promised_room() {
  if (!promised_room_) return false;
  const auto promised = std::find_if(running_.begin(), running_.end(), [&](const Sequence* at) {
    return at->serial == *promised_room_;
  });
  promised_room_.reset();
  if (promised == running_.end() || is_youngest(**promised)) return false;
  pause(*running_.back());
  return true;
}

void Scheduler::pause(Sequence& sequence) {
  TANDEM_CHECK(sequence.planned_in != plan_number_);
  give_up_pages(sequence, plan_number_ - 1);
  stop_running(sequence);
  sequence.computed = 0;
  sequence.awaits_token = sequence.unknown > 0;
  waiting_.add(sequence);
  ++pauses_;
}

/// Leaves what was computed in the index; plans after `ready` may read it.
void Scheduler::give_up_pages(Sequence& sequence, uint64_t ready) {
  const uint32_t size = options_.page_tokens;
  const uint32_t end = sequence.shareable();
  Place place = sequence.place;
  uint32_t left = sequence.indexed * size;  // positions that nodes hold
  for (uint32_t page = sequence.indexed; options_.prefix_reuse && left < end; ++page) {
    const uint32_t count = std::min(size, end - left);
    if (count < size && options_.strict_classes) break;
    const auto tokens = std::span<const TokenId>(sequence.tokens).subspan(left, count);
    const auto node = leave(place, tokens, sequence.pages[page], ready, sequence.priority());
    if (!node) break;
    place = *node;
    left += count;
    sides_.offer(sequence, place, left);
  }
  if (left > 0 && left == sequence.computed) sides_.offer_end(sequence, place);
  sides_.drop(sequence);
  for (; !sequence.pages.empty(); sequence.pages.pop_back()) index_.release(sequence.pages.back());
}

/// The node that holds these tokens: the page, or the one that others computed.
std::optional<PageId> Scheduler::leave(Place parent,
                                       std::span<const TokenId> tokens,
                                       PageId page,
                                       uint64_t ready,
                                       gen::Priority priority) {
  if (index_.insert(parent, tokens, page, ready, priority)) return page;
  const auto there = index_.exactly(parent, tokens);
  if (there) index_.touch(*there, priority);
  return there;
}

}  // namespace tandem::schedule
