// Which pages a sequence has: reuse, copy on write, room for more, pausing and giving up.
#include <algorithm>

#include "base/check.h"
#include "schedule/scheduler.h"

namespace tandem::schedule {

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
  return end < sequence.length() && (!options_.strict_classes || end <= sequence.prompt);
}

/// Takes full pages of the index as far as they go.
Scheduler::Adoption Scheduler::adopt(Sequence& sequence) {
  const uint32_t size = options_.page_tokens;
  if (!sequence.attached || sequence.computed % size != 0) return Adoption::kDone;
  while (reusable(sequence, sequence.computed + size)) {
    const auto hit =
        index_.find(sequence.place, page_span(sequence, sequence.indexed), plan_number_);
    if (!hit.page) break;
    if (hit.pending) return Adoption::kPending;
    index_.retain(*hit.page, sequence.priority());
    sequence.pages.push_back(*hit.page);
    sequence.place = *hit.page;
    ++sequence.indexed;
    sequence.computed += size;
    reused_tokens_ += size;
  }
  return Adoption::kDone;
}

/// Takes the leading tokens of a page whose later tokens differ, by a copy of it.
std::optional<plan::PageCopy> Scheduler::adopt_part(Sequence& sequence) {
  const uint32_t size = options_.page_tokens;
  if (!sequence.attached || options_.strict_classes || sequence.computed % size != 0) return {};
  const uint32_t most = std::min(size, sequence.remaining()) - 1;
  const auto wanted = std::span<const TokenId>(sequence.tokens).subspan(sequence.computed, most);
  const auto part = index_.longest(sequence.place, wanted, plan_number_);
  if (part.tokens == 0) return {};
  index_.retain(part.page, sequence.priority());
  const auto page = index_.allocate(may_evict_normal(sequence));
  if (!page) {
    index_.release(part.page);
    return {};
  }
  pinned_.push_back(part.page);
  sequence.pages.push_back(*page);
  sequence.computed += part.tokens;
  reused_tokens_ += part.tokens;
  return plan::PageCopy{.from = part.page, .to = *page};
}

/// Makes the full pages computed so far reusable. Stops for good where another request's page holds
/// the same tokens: what follows is added when the sequence gives up its pages.
void Scheduler::index_pages(Sequence& sequence) {
  const uint32_t size = options_.page_tokens;
  while (sequence.attached && (sequence.indexed + 1) * size <= sequence.shareable()) {
    const bool in_class =
        !options_.strict_classes || (sequence.indexed + 1) * size <= sequence.prompt;
    const PageId page = sequence.pages[sequence.indexed];
    sequence.attached =
        in_class && index_.insert(sequence.place, page_span(sequence, sequence.indexed), page,
                                  plan_number_, sequence.priority());
    if (!sequence.attached) return;
    sequence.place = page;
    ++sequence.indexed;
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
  const uint32_t end =
      options_.strict_classes ? std::min(sequence.computed, sequence.prompt) : sequence.shareable();
  Place place = sequence.place;
  uint32_t page = sequence.indexed;
  bool whole = options_.prefix_reuse;
  for (; whole && (page + 1) * size <= end; ++page) {
    const auto tokens = page_span(sequence, page);
    if (index_.insert(place, tokens, sequence.pages[page], ready, sequence.priority())) {
      place = sequence.pages[page];
    } else if (const auto hit = index_.find(place, tokens, ~uint64_t{0}); hit.page) {
      index_.touch(*hit.page, sequence.priority());
      place = *hit.page;
    } else {
      whole = false;
    }
  }
  if (whole && !options_.strict_classes && page * size < end) {
    const std::span<const TokenId> tokens(sequence.tokens);
    index_.insert(place, tokens.subspan(page * size, end - page * size), sequence.pages[page],
                  ready, sequence.priority());
  }
  for (; !sequence.pages.empty(); sequence.pages.pop_back()) index_.release(sequence.pages.back());
}

}  // namespace tandem::schedule
