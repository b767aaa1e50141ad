#include "engine/fake_runner.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "engine/check_plan.h"

namespace tandem::engine {
namespace {

size_t token_count(const plan::StepPlan& plan) {
  size_t count = 0;
  for (const plan::Row& row : plan.rows) count += row.tokens.size();
  return count;
}

}  // namespace

FakeRunner::FakeRunner(FakeOptions options)
    : options_(std::move(options)),
      slots_(size_t{options_.pages} * options_.page_tokens),
      window_slots_(size_t{options_.window_pages} * options_.page_tokens),
      states_(options_.state_slots) {
  state_hash_.reset(0);
  TANDEM_CHECK(options_.page_tokens > 0 && options_.depth > 0 && options_.vocab > 0);
}

RunnerInfo FakeRunner::info() const {
  return {.vocab = options_.vocab,
          .max_context = options_.max_context,
          .page_tokens = options_.page_tokens,
          .pages = options_.pages,
          .window = options_.window,
          .window_pages = options_.window_pages,
          .state_slots = options_.state_slots,
          .state_step = options_.state_step,
          .depth = options_.depth,
          .step_tokens = options_.step_tokens,
          .draws = options_.draws,
          .chooses_blocks = options_.chooses_blocks,
          .hidden = options_.hidden};
}

FakeRunner::Slot& FakeRunner::slot(plan::PageId page, uint32_t offset) {
  return slots_[size_t{page} * options_.page_tokens + offset];
}

void FakeRunner::write(std::vector<Slot>& slots,
                       plan::PageId page,
                       uint32_t position,
                       const plan::Row& row) {
  slots[size_t{page} * options_.page_tokens + position % options_.page_tokens] = {
      .token = row.tokens[position - row.start],
      .position = position,
      .request = row.request,
      .numeric_class = row.numeric_class};
}

void FakeRunner::run_row(plan::Row row, Issued& step) {
  if (goes_on(row)) row.tokens[0] = std::max(0, last_drawn_.at(row.request));
  const uint32_t size = options_.page_tokens;
  const auto end = row.start + static_cast<uint32_t>(row.tokens.size());
  for (uint32_t position = row.start; position < end; ++position) {
    write(slots_, row.pages[position / size], position, row);
    if (options_.window > 0)
      write(window_slots_, row.window_pages[(position - row.window_start) / size], position, row);
  }
  std::vector<FakePosition> history = history_of(row);
  const bool is_whole =
      sees_its_window(row, history) && has_its_state(row, history) && made_its_answer(row);
  advance_state(row);
  if (!is_whole) history[0].token = -1;  // other layers would read something else
  state_hash_.row(row, end);
  if (row.pooling) pool(row, history, step);
  if (row.draw) {
    step.drawn.push_back(draw(*row.draw, history));
  } else if (row.wants_logits) {
    const std::vector<float> made = fake_logits(history, options_.vocab);
    step.logits.insert(step.logits.end(), made.begin(), made.end());
  }
}

/// Whether window pages hold what the row's tokens see through them.
bool FakeRunner::sees_its_window(const plan::Row& row,
                                 std::span<const FakePosition> history) const {
  if (options_.window == 0) return true;
  const uint32_t size = options_.page_tokens;
  const uint32_t first = row.start + 1 - std::min(row.start + 1, options_.window);
  for (auto position = first; position < history.size(); ++position) {
    const plan::PageId page = row.window_pages[(position - row.window_start) / size];
    const FakePosition at = read(window_slots_[size_t{page} * size + position % size], position);
    const FakePosition& wanted = history[position];
    if (at.token != wanted.token || at.numeric_class != wanted.numeric_class) return false;
  }
  return true;
}

/// Whether its slot holds the state after everything before the row.
bool FakeRunner::has_its_state(const plan::Row& row, std::span<const FakePosition> history) const {
  if (!row.state) return true;
  const State& state = states_[*row.state];
  return state.position == row.start && state.absorbed == fake_state(0, history.first(row.start));
}

/// Whether a row that reuses choices finds none but its request's own behind the prompt: others
/// made theirs by other rules.
bool FakeRunner::made_its_answer(const plan::Row& row) const {
  if (!row.reuse) return true;
  const uint32_t size = options_.page_tokens;
  for (uint32_t position = row.reuse->from; position < row.start; ++position) {
    const Slot& at = slots_[size_t{row.pages[position / size]} * size + position % size];
    if (at.request != row.request || at.numeric_class != plan::NumericClass::kStep) return false;
  }
  return true;
}

void FakeRunner::advance_state(const plan::Row& row) {
  if (options_.state_slots == 0) return;
  State state = row.state ? states_[*row.state] : State{};
  uint32_t done = 0;
  for (const plan::StateSave& save : row.saves) {
    for (; done < save.tokens; ++done) {
      const FakePosition at = {.token = row.tokens[done],
                               .numeric_class = options_.classes_matter
                                                    ? row.numeric_class
                                                    : plan::NumericClass::kChunk};
      state = {.absorbed = fake_state(state.absorbed, {&at, 1}), .position = row.start + done + 1};
    }
    states_[save.slot] = state;
  }
}

void FakeRunner::pool(const plan::Row& row,
                      std::span<const FakePosition> history,
                      Issued& step) const {
  const size_t first = row.pooling == gen::Pooling::kMean ? row.start : history.size() - 1;
  std::vector<float> sums(options_.hidden);
  for (size_t end = first + 1; end <= history.size(); ++end) {
    const std::vector<float> one = fake_hidden(history.first(end), options_.hidden);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += one[i];
  }
  step.pooled.insert(step.pooled.end(), sums.begin(), sums.end());
}

plan::TokenId FakeRunner::draw(const plan::Draw& draw, std::span<const FakePosition> history) {
  const std::vector<float> logits = fake_logits(history, options_.vocab);
  const std::vector<plan::TokenId> tokens(history.size());  // only their number counts
  const auto token =
      sampler_.draw({.logits = logits, .history = tokens, .sampling = plan::sampling_of(draw)});
  return token ? token->id : -1;
}

/// What the row's pages hold, however it came there.
std::vector<FakePosition> FakeRunner::history_of(const plan::Row& row) {
  const uint32_t size = options_.page_tokens;
  std::vector<FakePosition> history(row.start + row.tokens.size());
  for (uint32_t position = 0; position < history.size(); ++position)
    history[position] = read(slot(row.pages[position / size], position % size), position);
  return history;
}

FakePosition FakeRunner::read(const Slot& at, uint32_t position) const {
  const bool is_intact = at.token >= 0 && at.position == position;
  return {.token = is_intact ? at.token : -1 - static_cast<int32_t>(at.position),
          .numeric_class = options_.classes_matter ? at.numeric_class : plan::NumericClass::kChunk};
}

void FakeRunner::die_if_asked(const plan::StepPlan& plan) const {
  if (!options_.die_at_token) return;
  for (const plan::Row& row : plan.rows) {
    for (const plan::TokenId token : row.tokens) {
      if (token != *options_.die_at_token) continue;
      if (options_.death == FakeDeath::kExit) ::_exit(1);
      std::abort();
    }
  }
}

Duration FakeRunner::delay(const plan::StepPlan& plan) const {
  return options_.step_delay + options_.token_delay * static_cast<int64_t>(token_count(plan));
}

void FakeRunner::copy_page(std::vector<Slot>& slots, const plan::PageCopy& copy) const {
  const auto page = [&](plan::PageId id) {
    return slots.begin() + static_cast<std::ptrdiff_t>(size_t{id} * options_.page_tokens);
  };
  std::copy_n(page(copy.from), options_.page_tokens, page(copy.to));
}

Status FakeRunner::issue(const plan::StepPlan& plan) {
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) return Error{.code = ErrorCode::kPeerLost, .message = "[fake runner] aborted"};
  }
  const PlanTurn turn{.epoch = epoch_, .sequence = next_sequence_, .in_flight = issued_.size()};
  const auto drew_last = [&](plan::RequestId id) { return last_drawn_.contains(id); };
  if (Status status = check_plan(plan, info(), turn, drew_last); !status) return status;
  die_if_asked(plan);
  ++next_sequence_;
  state_hash_.begin(plan.sequence);
  for (const plan::PageCopy& copy : plan.copies) {
    copy_page(slots_, copy);
    state_hash_.copy(copy);
  }
  for (const plan::PageCopy& copy : plan.window_copies) {
    copy_page(window_slots_, copy);
    state_hash_.window_copy(copy);
  }
  Issued step{.plan = plan, .logits = {}, .drawn = {}, .pooled = {}, .state_hash = 0, .ready = {}};
  for (const plan::Row& row : plan.rows) run_row(row, step);
  last_drawn_.clear();
  for (size_t at = 0; const plan::Row& row : plan.rows)
    if (row.draw) last_drawn_[row.request] = step.drawn[at++];
  step.state_hash = state_hash_.end();
  tokens_ += token_count(plan);
  if (!options_.pass_time) {
    busy_until_ = std::max(busy_until_, SteadyClock().now()) + delay(plan);
    step.ready = busy_until_;
  }
  issued_.push_back(std::move(step));
  return {};
}

bool FakeRunner::wait_until(TimePoint ready) {
  std::unique_lock lock(mutex_);
  if (!aborted_ && ready > SteadyClock().now()) {
    wake_.wait_until(lock, ready, [this] { return aborted_; });
  }
  return !aborted_;
}

Result<StepResult> FakeRunner::complete() {
  if (issued_.empty()) return Error{ErrorCode::kInvalid, "[fake runner] no step is in flight"};
  if (options_.pass_time) options_.pass_time(delay(issued_.front().plan));
  if (options_.before_complete) {
    if (Status status = options_.before_complete(issued_.front().plan); !status) {
      return status.error();
    }
  }
  if (!wait_until(issued_.front().ready)) {
    return Error{.code = ErrorCode::kPeerLost, .message = "[fake runner] aborted"};
  }
  Issued step = std::move(issued_.front());
  issued_.pop_front();
  logits_ = std::move(step.logits);
  drawn_ = std::move(step.drawn);
  pooled_ = std::move(step.pooled);
  ++steps_;
  return StepResult{.sequence = step.plan.sequence,
                    .logits = logits_,
                    .drawn = drawn_,
                    .pooled = pooled_,
                    .state_hash = step.state_hash};
}

Status FakeRunner::reset(uint32_t epoch) {
  issued_.clear();
  last_drawn_.clear();
  slots_.assign(slots_.size(), Slot{});
  window_slots_.assign(window_slots_.size(), Slot{});
  states_.assign(states_.size(), State{});
  epoch_ = epoch;
  next_sequence_ = 0;
  state_hash_.reset(epoch);
  busy_until_ = {};
  const std::lock_guard lock(mutex_);
  aborted_ = false;
  return {};
}

void FakeRunner::abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  wake_.notify_all();
}

void FakeRunner::corrupt(plan::PageId page, uint32_t offset, plan::TokenId token) {
  slot(page, offset).token = token;
}

}  // namespace tandem::engine
