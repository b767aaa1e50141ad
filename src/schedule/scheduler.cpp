#include "schedule/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tandem::schedule {

Scheduler::Scheduler(SchedulerOptions options)
    : options_(options),
      max_length_(static_cast<uint32_t>(
          std::min(uint64_t{options.max_context}, uint64_t{options.pages} * options.page_tokens))),
      index_(options.pages, options.page_tokens) {
  TANDEM_CHECK(options_.max_rows > 0 && options_.step_tokens > 0 && options_.depth > 0);
}

Sequence& Scheduler::add(gen::Request request, TimePoint now) {
  auto owned = std::make_unique<Sequence>();
  Sequence& sequence = *owned;
  sequence.serial = ++serials_;
  sequence.arrival = now;
  sequence.client = clients_.enter(request.client);
  sequence.prompt = static_cast<uint32_t>(request.prompt.size());
  TANDEM_CHECK(sequence.prompt > 0 && sequence.prompt < max_length_);
  sequence.limit = sequence.prompt + std::min(request.max_tokens, max_length_ - sequence.prompt);
  sequence.tokens = std::move(request.prompt);
  sequence.tokens.insert(sequence.tokens.end(), request.emitted.begin(), request.emitted.end());
  if (options_.draws) sequence.draw = plan::draw_of(request);
  request.prompt.clear();
  request.emitted.clear();
  sequence.request = std::move(request);
  TANDEM_CHECK(sequence.length() < max_length_);
  waiting_.add(sequence);
  const bool is_new = sequences_.emplace(sequence.request.id, std::move(owned)).second;
  TANDEM_CHECK(is_new, "request {} is there already", sequence.request.id);
  return sequence;
}

void Scheduler::remove(gen::RequestId id) {
  Sequence& sequence = *sequences_.at(id);
  if (sequence.running) {
    give_up_pages(sequence, plan_number_);
    stop_running(sequence);
  } else {
    waiting_.remove(sequence);
  }
  clients_.leave(sequence.client);
  sequences_.erase(id);
}

Sequence* Scheduler::find(gen::RequestId id) {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

void Scheduler::append(Sequence& sequence, TokenId token) {
  TANDEM_CHECK(sequence.unknown > 0 && sequence.length() < sequence.limit);
  sequence.tokens.push_back(token);
  if (--sequence.unknown == 0) sequence.awaits_token = false;
}

plan::StepPlan* Scheduler::next(TimePoint now) {
  TANDEM_CHECK(plan_.rows.empty(), "the last plan was not returned");
  ++plan_number_;
  chosen_.clear();
  const bool made_room = make_promised_room();
  choose_decode_rows();
  if (!made_room) admit(now);
  choose_prefill_rows();
  for (const PageId page : pinned_) index_.release(page);
  pinned_.clear();
  if (chosen_.empty()) return nullptr;
  build();
  return &plan_;
}

void Scheduler::build() {
  std::stable_partition(chosen_.begin(), chosen_.end(),
                        [](const Chosen& row) { return row.start < row.sequence->prompt; });
  planned_.clear();
  plan_.copies.clear();
  for (const Chosen& at : chosen_) {
    Sequence& sequence = *at.sequence;
    const uint32_t end = at.start + at.count;
    const bool is_chunk = at.start < sequence.prompt;
    plan::Row row;
    if (!spare_rows_.empty()) {
      row = std::move(spare_rows_.back());
      spare_rows_.pop_back();
    }
    row.request = sequence.request.id;
    row.numeric_class = is_chunk ? plan::NumericClass::kChunk : plan::NumericClass::kStep;
    row.start = at.start;
    if (at.start < sequence.length()) {
      const auto first = sequence.tokens.begin() + static_cast<std::ptrdiff_t>(at.start);
      row.tokens.assign(first, first + static_cast<std::ptrdiff_t>(at.count));
    } else {
      row.tokens.assign(1, plan::kDrawn);
    }
    row.pages.swap(sequence.pages);
    row.wants_logits = at.samples && !sequence.draw;
    row.draw = at.samples ? sequence.draw : std::nullopt;
    plan_.rows.push_back(std::move(row));
    if (at.copy) plan_.copies.push_back(*at.copy);
    const bool is_decode = !is_chunk && at.count == 1;
    planned_.push_back({.request = sequence.request.id,
                        .serial = sequence.serial,
                        .wants_logits = at.samples && !sequence.draw,
                        .draws = at.samples && sequence.draw.has_value(),
                        .starts = at.starts,
                        .cached_tokens = at.reused,
                        .prefilled = is_decode ? 0 : std::min(end, sequence.prompt)});
    computed_tokens_ += at.count;
  }
}

void Scheduler::returned() {
  for (size_t i = 0; i < plan_.rows.size(); ++i) {
    plan::Row& row = plan_.rows[i];
    row.pages.swap(chosen_[i].sequence->pages);
    spare_rows_.push_back(std::move(row));
  }
  plan_.rows.clear();
}

SchedulerCounts Scheduler::counts() const {
  const auto paused = static_cast<uint32_t>(waiting_.paused());
  return {.waiting = static_cast<uint32_t>(waiting_.size()) - paused,
          .paused = paused,
          .running = static_cast<uint32_t>(running_.size()),
          .pages_free = index_.pool().free(),
          .pages_cached = index_.pool().cached(),
          .pages_referenced = index_.pool().referenced(),
          .pauses = pauses_,
          .reused_tokens = reused_tokens_,
          .computed_tokens = computed_tokens_};
}

bool Scheduler::is_consistent() const {
  if (!index_.is_consistent()) return false;
  if (waiting_.size() + running_.size() != sequences_.size()) return false;
  std::vector<bool> held(options_.pages);
  for (const Sequence* sequence : running_) {
    if (!sequence->running || sequence->pages.size() != pages_for(sequence->computed)) return false;
    for (const PageId page : sequence->pages) {
      if (index_.pool().references(page) == 0) return false;
      held[page] = true;
    }
  }
  const auto count = std::count(held.begin(), held.end(), true);
  return count == static_cast<std::ptrdiff_t>(index_.pool().referenced());
}

}  // namespace tandem::schedule
