// Which rows a step has: admission, decode rows and prefill chunks.
#include <algorithm>
#include <tuple>

#include "schedule/scheduler.h"

namespace tandem::schedule {
namespace {

bool is_low(const Sequence& sequence) { return sequence.priority() == gen::Priority::kLow; }

}  // namespace

void Scheduler::admit(TimePoint now) {
  while (running_.size() < most_running()) {
    Sequence* sequence = waiting_.next(clients_, now, options_.low_priority_patience);
    if (sequence == nullptr || !try_admit(*sequence)) return;
    waiting_.remove(*sequence);
    start_running(*sequence);
  }
}

/// Each may hold two states at once: its own, and a prefix's. (Snapshots that no node holds yet are
/// few, and a row that finds no slot waits.)
size_t Scheduler::most_running() const {
  const uint32_t states = options_.state_slots == 0 ? options_.max_rows : options_.state_slots / 2;
  return std::min(options_.max_rows, states);
}

/// Takes what can be reused and reserves the rest, or changes nothing.
bool Scheduler::try_admit(Sequence& sequence) {
  const auto room = [&] {
    const uint32_t available = index_.available(may_evict_normal(sequence));
    return available - std::min(available, reserved());
  };
  const uint32_t room_before = room();
  if (!running_.empty() && sequence.blocked_need > room_before) return false;
  if (!has_window_room(sequence) || !sides_.begin(sequence)) return false;
  attach(sequence);
  adopt(sequence);
  const uint32_t most = sequence.length() + options_.admit_answer_tokens;
  sequence.target_pages = pages_for(std::min(sequence.limit, most));
  const auto held = static_cast<uint32_t>(sequence.pages.size());
  const uint32_t need = sequence.target_pages - std::min(sequence.target_pages, held);
  const uint32_t room_after = room();
  if (need <= room_after) return true;
  sequence.blocked_need = need + (room_before - std::min(room_before, room_after));
  reused_tokens_ -= sequence.computed;
  sides_.drop(sequence);
  for (; !sequence.pages.empty(); sequence.pages.pop_back()) index_.release(sequence.pages.back());
  sequence.computed = 0;
  return false;
}

/// Of every running sequence the most that it will hold is kept free, so that none runs short.
bool Scheduler::has_window_room(const Sequence& sequence) const {
  uint64_t need = sides_.window_need(sequence.limit);
  for (const Sequence* at : running_) need += sides_.window_need(at->limit);
  return need <= options_.window_pages;
}

uint32_t Scheduler::reserved() const {
  uint32_t pages = 0;
  for (const Sequence* sequence : running_) {
    const auto held = static_cast<uint32_t>(sequence->pages.size());
    pages += sequence->target_pages - std::min(sequence->target_pages, held);
  }
  return pages;
}

void Scheduler::start_running(Sequence& sequence) {
  if (sequence.order == 0) {
    sequence.order = ++orders_;
    clients_[sequence.client].last_admission = ++turns_;
  }
  sequence.running = true;
  sequence.fresh = true;
  sequence.blocked_need = 0;
  const auto older = [](const Sequence* a, const Sequence* b) {
    return std::tuple(is_low(*a), a->order) < std::tuple(is_low(*b), b->order);
  };
  running_.insert(std::upper_bound(running_.begin(), running_.end(), &sequence, older), &sequence);
}

void Scheduler::stop_running(Sequence& sequence) {
  sequence.running = false;
  std::erase(running_, &sequence);
}

void Scheduler::choose_decode_rows() {
  // In a pipeline each of the steps in flight takes its share of the rows, so that all stages have
  // work. One device gains nothing from that, and its rows go on in every step.
  const auto answering = std::count_if(running_.begin(), running_.end(), [](const Sequence* at) {
    return at->computed >= at->prompt && at->remaining() <= 1 && !at->request.pooling;
  });
  const auto depth = options_.draws ? size_t{1} : size_t{options_.depth};
  const size_t most = (static_cast<size_t>(answering) + depth - 1) / depth;
  for (size_t i = 0; i < running_.size() && chosen_.size() < most;) {
    Sequence& sequence = *running_[i++];
    if (sequence.awaits_token || !sequence.decodes() || sequence.is_drawn_out()) continue;
    if (pages_for(sequence.computed + 1) == sequence.pages.size() || ensure_page(sequence)) {
      commit(sequence, 1, {});
    } else {
      pause(sequence);  // the youngest: it made room for nobody, and nobody for it
      --i;
    }
  }
}

std::vector<Sequence*> Scheduler::prefill_candidates() {
  std::vector<Sequence*> candidates;
  for (Sequence* sequence : running_) {
    if (sequence->awaits_token || sequence->remaining() == 0) continue;
    if (sequence->decodes() && !sequence->fresh) continue;  // resumed just now from reused pages
    candidates.push_back(sequence);
  }
  const auto turn = [&](const Sequence* at) {
    return std::tuple(is_low(*at), clients_[at->client].last_prefill, at->order);
  };
  const auto rest = [](const Sequence* at) {
    return std::tuple(is_low(*at), at->remaining(), at->order);
  };
  const auto first = std::min_element(candidates.begin(), candidates.end(),
                                      [&](auto* a, auto* b) { return turn(a) < turn(b); });
  if (first == candidates.end()) return candidates;
  std::iter_swap(candidates.begin(), first);
  std::sort(candidates.begin() + 1, candidates.end(),
            [&](auto* a, auto* b) { return rest(a) < rest(b); });
  return candidates;
}

/// The one whose client's turn it is gets at least half of the budget, the others share the rest,
/// shortest first, and what they leave goes to the first again.
void Scheduler::choose_prefill_rows() {
  const std::vector<Sequence*> candidates = prefill_candidates();
  if (candidates.empty()) return;
  const auto decode_rows = static_cast<uint32_t>(chosen_.size());
  const uint32_t budget = std::max(
      options_.step_tokens - std::min(options_.step_tokens, decode_rows), options_.page_tokens);
  uint64_t wanted = 0;
  for (size_t i = 1; i < candidates.size(); ++i) wanted += candidates[i]->remaining();
  const auto share = static_cast<uint32_t>(std::min<uint64_t>(wanted, budget / 2));

  Sequence& first = *candidates.front();
  uint32_t used = choose_chunk(first, budget - share, true);
  if (used > 0) clients_[first.client].last_prefill = ++turns_;
  for (size_t i = 1; i < candidates.size(); ++i) {
    Sequence& sequence = *candidates[i];
    if (!sequence.running) continue;  // paused to make room
    used += choose_chunk(sequence, budget - std::min(budget, used), used == 0);
  }
  const bool extends = first.running && first.planned_in == plan_number_ && used < budget;
  if (extends) choose_chunk(first, budget - used, false);
}

uint32_t Scheduler::chunk_end(const Sequence& sequence,
                              uint32_t quota,
                              bool at_least_a_page) const {
  const uint32_t start = sequence.computed;
  const uint32_t page = options_.page_tokens;
  // A row never mixes numeric classes.
  const uint32_t stop = start < sequence.prompt ? sequence.prompt : sequence.length();
  if (quota >= stop - start) return stop;
  const uint32_t end = (start + quota) / page * page;
  if (end > start) return end;
  return at_least_a_page ? std::min(stop, (start / page + 1) * page) : start;
}

uint32_t Scheduler::choose_chunk(Sequence& sequence, uint32_t quota, bool at_least_a_page) {
  const bool extends = sequence.planned_in == plan_number_;
  if (extends) {
    if (sequence.remaining() == 0 || sequence.computed == sequence.prompt) return 0;
  } else if (adopt(sequence) == Adoption::kPending) {
    return 0;  // another row of this step computes what it needs next
  }
  uint32_t end = chunk_end(sequence, quota, at_least_a_page);
  if (end == sequence.computed) return 0;
  Before before;
  if (sequence.fresh) before = adopt_part(sequence);
  if (before.copy) end = chunk_end(sequence, quota, true);
  while (sequence.pages.size() < pages_for(end) && ensure_page(sequence)) {
  }
  const auto covered = static_cast<uint32_t>(sequence.pages.size()) * options_.page_tokens;
  end = std::min(end, covered);
  if (end <= sequence.computed) {
    if (!extends && is_youngest(sequence) && running_.size() > 1) pause(sequence);
    return 0;
  }
  const uint32_t count = end - sequence.computed;
  commit(sequence, count, before);
  return count;
}

Scheduler::Chosen& Scheduler::row_of(const Sequence& sequence) {
  return *std::find_if(chosen_.rbegin(), chosen_.rend(),
                       [&](const Chosen& at) { return at.sequence == &sequence; });
}

void Scheduler::commit(Sequence& sequence, uint32_t count, Before before) {
  const uint32_t from = sequence.computed;
  if (sequence.planned_in == plan_number_) {
    row_of(sequence).count += count;
  } else {
    chosen_.push_back({.sequence = &sequence,
                       .start = sequence.computed,
                       .count = count,
                       .starts = !sequence.started,
                       .samples = false,
                       .reused = std::min(sequence.computed, sequence.prompt),
                       .before = before,
                       .state = sides_.state_before(sequence),
                       .saves = {}});
  }
  sequence.computed += count;
  sides_.cover(sequence, sequence.computed);
  keep_states(sequence, from);
  sequence.planned_in = plan_number_;
  sequence.started = true;
  sequence.fresh = false;
  if (sequence.computed == sequence.length() + sequence.unknown && !sequence.request.pooling) {
    row_of(sequence).samples = true;
    ++sequence.unknown;
    sequence.awaits_token = !sequence.draw;
  }
  index_pages(sequence);
}

void Scheduler::keep_states(Sequence& sequence, uint32_t from) {
  Chosen& row = row_of(sequence);
  for (plan::StateSave save : sides_.keep_states(sequence, from)) {
    save.tokens += from - row.start;
    row.saves.push_back(save);
  }
}

}  // namespace tandem::schedule
