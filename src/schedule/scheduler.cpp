#include "schedule/scheduler.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"

namespace tandem::schedule {

Scheduler::Scheduler(SchedulerOptions options)
    : options_(options),
      max_length_(static_cast<uint32_t>(
          std::min(uint64_t{options.max_context}, uint64_t{options.pages} * options.page_tokens))),
      index_({.pages = options.pages,
              .page_tokens = options.page_tokens,
              .window_pages = options.window == 0 ? 0 : options.window_pages,
              .state_slots = options.state_slots}),
      sides_(index_,
             {.page_tokens = options.page_tokens,
              .window = options.window,
              .state_step = options.state_step,
              .step_tokens = options.step_tokens,
              .keeps_states = options.prefix_reuse}) {
  TANDEM_CHECK(options_.max_rows > 0 && options_.step_tokens > 0 && options_.depth > 0);
  TANDEM_CHECK(sides_.window_need(max_length_) <= options_.window_pages || options_.window == 0);
  TANDEM_CHECK(options_.state_slots == 0 ||
               (options_.state_slots >= 2 && options_.state_step % options_.page_tokens == 0 &&
                options_.state_step > 0));
}

/// An answer that reuses choices is computed by a rule of its own: nobody else's is the same.
uint32_t Scheduler::shared_of(const gen::Request& request) const {
  if (request.pooling) return 0;
  const bool shares_answer = !options_.strict_classes && request.index_reuse == 0;
  return shares_answer ? max_length_ : static_cast<uint32_t>(request.prompt.size());
}

Sequence& Scheduler::add(gen::Request request, TimePoint now) {
  auto owned = std::make_unique<Sequence>();
  Sequence& sequence = *owned;
  sequence.serial = ++serials_;
  sequence.arrival = now;
  sequence.client = clients_.enter(request.client);
  sequence.prompt = static_cast<uint32_t>(request.prompt.size());
  const uint32_t room = request.pooling ? 0 : 1;
  TANDEM_CHECK(sequence.prompt > 0 && sequence.prompt + room <= max_length_);
  const uint32_t answer = request.pooling ? 0 : request.max_tokens;
  sequence.limit = sequence.prompt + std::min(answer, max_length_ - sequence.prompt);
  sequence.goes_on = !request.emitted.empty();
  sequence.shared = shared_of(request);
  sequence.tokens = std::move(request.prompt);
  sequence.tokens.insert(sequence.tokens.end(), request.emitted.begin(), request.emitted.end());
  if (options_.draws) sequence.draw = plan::draw_of(request);
  request.prompt.clear();
  request.emitted.clear();
  sequence.request = std::move(request);
  TANDEM_CHECK(sequence.length() + room <= max_length_);
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
  for (Sequence* sequence : running_) sides_.leave_behind(*sequence);
  const bool made_room = make_promised_room();
  choose_decode_rows();
  if (!made_room) admit(now);
  choose_prefill_rows();
  end_choice();
  if (chosen_.empty()) return nullptr;
  build();
  return &plan_;
}

/// Nothing of this plan is chosen any more: what its rows only read may go to later ones.
void Scheduler::end_choice() {
  for (const PageId page : pinned_) index_.release(page);
  pinned_.clear();
  sides_.end_plan();
}

void Scheduler::build() {
  std::stable_partition(chosen_.begin(), chosen_.end(),
                        [](const Chosen& row) { return row.start < row.sequence->prompt; });
  planned_.clear();
  plan_.copies.clear();
  plan_.window_copies.clear();
  for (Chosen& at : chosen_) {
    if (at.before.copy) plan_.copies.push_back(*at.before.copy);
    if (at.before.window_copy) plan_.window_copies.push_back(*at.before.window_copy);
    add_row(at);
    add_planned(at);
    computed_tokens_ += at.count;
  }
}

/// A mean is of all positions, and the last one is in the row that ends the prompt.
std::optional<gen::Pooling> Scheduler::pooling_of(const Chosen& at) {
  const Sequence& sequence = *at.sequence;
  const auto& pooling = sequence.request.pooling;
  const bool is_wanted = pooling == gen::Pooling::kMean || at.start + at.count == sequence.prompt;
  return is_wanted ? pooling : std::nullopt;
}

/// The row takes the page table itself; returned() puts it back.
void Scheduler::add_row(Chosen& at) {
  Sequence& sequence = *at.sequence;
  plan::Row row;
  if (!spare_rows_.empty()) {
    row = std::move(spare_rows_.back());
    spare_rows_.pop_back();
  }
  row.request = sequence.request.id;
  row.numeric_class =
      at.start < sequence.prompt ? plan::NumericClass::kChunk : plan::NumericClass::kStep;
  row.start = at.start;
  if (at.start < sequence.length()) {
    const auto first = sequence.tokens.begin() + static_cast<std::ptrdiff_t>(at.start);
    row.tokens.assign(first, first + static_cast<std::ptrdiff_t>(at.count));
  } else {
    row.tokens.assign(1, plan::kDrawn);
  }
  row.pages.swap(sequence.pages);
  row.window_start = sequence.window_first * options_.page_tokens;
  row.window_pages = sequence.window_pages;
  row.state = at.state;
  row.saves.swap(at.saves);
  if (sequence.state) row.saves.push_back({.tokens = at.count, .slot = *sequence.state});
  row.wants_logits = at.samples && !sequence.draw;
  row.draw = at.samples ? sequence.draw : std::nullopt;
  row.pooling = pooling_of(at);
  row.reuse.reset();
  if (sequence.request.index_reuse > 0 && row.numeric_class == plan::NumericClass::kStep)
    row.reuse = {.most_age = sequence.request.index_reuse, .from = sequence.prompt};
  plan_.rows.push_back(std::move(row));
}

void Scheduler::add_planned(const Chosen& at) {
  const Sequence& sequence = *at.sequence;
  const bool is_decode = at.start >= sequence.prompt && at.count == 1;
  planned_.push_back({.request = sequence.request.id,
                      .serial = sequence.serial,
                      .wants_logits = at.samples && !sequence.draw,
                      .draws = at.samples && sequence.draw.has_value(),
                      .pools = pooling_of(at).has_value(),
                      .start = at.start,
                      .starts = at.starts,
                      .cached_tokens = at.reused,
                      .prefilled = is_decode ? 0 : std::min(at.start + at.count, sequence.prompt)});
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
          .pages = index_.pool().figures(),
          .window_pages = index_.windows().pool().figures(),
          .states = index_.states().pool().figures(),
          .pauses = pauses_,
          .reused_tokens = reused_tokens_,
          .computed_tokens = computed_tokens_,
          .window_pages_left = sides_.window_pages_left()};
}

bool Scheduler::is_consistent() const {
  if (!index_.is_consistent()) return false;
  if (waiting_.size() + running_.size() != sequences_.size()) return false;
  std::set<PageId> pages, windows, states;
  for (const Sequence* sequence : running_) {
    if (!sequence->running || sequence->pages.size() != pages_for(sequence->computed)) return false;
    if (sequence->state.has_value() != index_.states().exist()) return false;
    pages.insert(sequence->pages.begin(), sequence->pages.end());
    windows.insert(sequence->window_pages.begin(), sequence->window_pages.end());
    if (sequence->state) states.insert(*sequence->state);
    if (sequence->restored) states.insert(*sequence->restored);
    for (const Snapshot& snapshot : sequence->snapshots) states.insert(snapshot.slot);
  }
  return pages.size() == index_.pool().referenced() &&
         windows.size() == index_.windows().pool().referenced() &&
         states.size() == index_.states().pool().referenced();
}

}  // namespace tandem::schedule
