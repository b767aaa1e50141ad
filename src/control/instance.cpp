#include "control/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace tandem::control {

Instance::Instance(InstanceOptions options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      requests_(options_.requests),
      progress_(options_.progress),
      slots_(options_.ranks) {
  TANDEM_CHECK(options_.ranks > 0, "an instance needs a rank");
}

void Instance::start() {
  is_started_ = true;
  tick_at_ = clock_.now();
  for (Slot& slot : slots_) slot.start_at = clock_.now();
  advance();
}

Status Instance::submit(gen::Request request) {
  if (state_ == InstanceState::kFailed) {
    return Error{ErrorCode::kUnavailable, "the instance has failed: " + trouble_};
  }
  // An answer that goes on was taken before: neither a drain nor a bound may cut it off.
  const bool goes_on = !request.emitted.empty();
  const bool is_over = state_ == InstanceState::kStopping || state_ == InstanceState::kStopped;
  if (is_over || (is_draining_ && !goes_on)) {
    return Error{ErrorCode::kUnavailable, "the server is shutting down and takes no new requests"};
  }
  if (requests_.size() >= options_.max_requests && !goes_on) {
    return Error{ErrorCode::kBusy,
                 fmt::format("{} requests are unfinished, the most allowed", requests_.size())};
  }
  if (state_ != InstanceState::kReady && requests_.size() >= options_.max_waiting && !goes_on) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("the instance is {}, and {} requests wait for it already",
                             name(state_), requests_.size())};
  }
  Status added = requests_.add(std::move(request), clock_.now());
  if (added) pump();
  return added;
}

void Instance::cancel(gen::RequestId id) {
  RequestTable::CancelOutcome outcome = requests_.cancel(id);
  if (outcome.ended) actions_.push_back(Deliver{std::move(*outcome.ended)});
  if (outcome.ask_engine) send(slots_[0], plan::Cancel{.epoch = epoch_, .request = id});
}

void Instance::drain() { is_draining_ = true; }

void Instance::stop() {
  if (state_ == InstanceState::kStopping || state_ == InstanceState::kStopped) return;
  deliver(requests_.fail_all({ErrorCode::kUnavailable, "the server was stopped"}));
  state_ = InstanceState::kStopping;
  is_forming_ = false;
  for (Slot& slot : slots_) {
    if (slot.state == RankState::kGone || slot.state == RankState::kEnding) continue;
    if (!slot.is_linked) {
      kill(slot);
      continue;
    }
    send(slot, plan::Shutdown{});
    enter(slot, RankState::kEnding);
  }
  advance();
}

InstanceSnapshot Instance::snapshot() const {
  const bool is_busy = requests_.with_engine() > 0;
  InstanceSnapshot result{
      .name = options_.name,
      .state = state_,
      .epoch = epoch_,
      .is_draining = is_draining_,
      .is_healthy =
          state_ == InstanceState::kReady && !(is_busy && progress_.is_stalled(clock_.now())),
      .trouble = trouble_,
      .loading = loading_,
      .lost_epochs = lost_epochs_,
      .page_tokens = shape_ ? shape_->page_tokens : 0,
      .figures = figures(),
  };
  for (const Slot& slot : slots_) {
    const bool is_known = slot.state != RankState::kGone && slot.state != RankState::kSpawned;
    result.ranks.push_back({.rank = rank_of(slot),
                            .state = slot.state,
                            .pid = is_known ? slot.hello.pid : 0,
                            .device_bytes = is_known ? slot.hello.memory_bytes : 0,
                            .memory = is_known ? slot.figures.memory : plan::Memory{},
                            .steps = is_known ? slot.beat.steps : 0,
                            .starts = slot.number});
  }
  return result;
}

InstanceFigures Instance::figures() const {
  InstanceFigures result{.engine = slots_[0].figures.engine.value_or(plan::EngineFigures{}),
                         .deaths = deaths_,
                         .lost_epochs = ends_,
                         .resumed_requests = requests_.resumed(),
                         .blamed_requests = requests_.blamed(),
                         .token_gaps = requests_.token_gaps()};
  result.engine.totals += past_;
  return result;
}

Instance::Slot* Instance::find(Incarnation who) {
  if (who.rank >= slots_.size() || slots_[who.rank].number != who.number) return nullptr;
  return &slots_[who.rank];
}

void Instance::enter(Slot& slot, RankState state) {
  slot.state = state;
  slot.since = clock_.now();
}

uint32_t Instance::rank_of(const Slot& slot) const {
  return static_cast<uint32_t>(&slot - slots_.data());
}

void Instance::send(Slot& slot, plan::Frame frame) {
  if (slot.is_linked) actions_.push_back(Send{{rank_of(slot), slot.number}, std::move(frame)});
}

void Instance::deliver(std::vector<gen::Event> events) {
  for (gen::Event& event : events) actions_.push_back(Deliver{std::move(event)});
}

void Instance::kill(Slot& slot) {
  slot.is_linked = false;
  actions_.emplace_back(Kill{{rank_of(slot), slot.number}});
  enter(slot, RankState::kEnding);
}

bool Instance::is_in_epoch() const { return is_forming_ || state_ == InstanceState::kReady; }

// Moves on as far as the ranks' states allow.
void Instance::advance() {
  const auto all_are = [this](RankState state) {
    return std::all_of(slots_.begin(), slots_.end(),
                       [state](const Slot& slot) { return slot.state == state; });
  };
  if (state_ == InstanceState::kStopping && all_are(RankState::kGone)) {
    state_ = InstanceState::kStopped;
  }
  if (state_ != InstanceState::kStarting && state_ != InstanceState::kReforming) return;
  for (Slot& slot : slots_) {
    if (slot.state != RankState::kGone || clock_.now() < slot.start_at) continue;
    if (slot.figures.engine) past_ += slot.figures.engine->totals;
    Slot fresh;
    fresh.number = slot.number + 1;
    fresh.failures = slot.failures;
    slot = std::move(fresh);
    enter(slot, RankState::kSpawned);
    actions_.push_back(Spawn{{rank_of(slot), slot.number}});
  }
  if (!is_forming_ && all_are(RankState::kIdle)) form();
  if (is_forming_ && all_are(RankState::kReady)) begin_epoch();
}

void Instance::form() {
  ++epoch_;
  is_forming_ = true;
  const bool all_loaded =
      std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.has_loaded; });
  const Duration timeout = all_loaded ? options_.form_timeout : options_.load_timeout;
  plan::Form form;
  form.epoch = epoch_;
  form.size = options_.ranks;
  form.comm = options_.comm;
  form.shared_memory_name = fmt::format("{}{}", options_.meeting_prefix, epoch_);
  if (options_.make_secret) form.secret = options_.make_secret();
  form.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(timeout);
  for (const Slot& slot : slots_) {
    form.plan_addresses.push_back(slot.hello.plan_address);
    form.data_addresses.push_back(slot.hello.data_address);
  }
  for (Slot& slot : slots_) {
    form.rank = rank_of(slot);
    send(slot, form);
    enter(slot, RankState::kForming);
  }
}

void Instance::begin_epoch() {
  is_forming_ = false;
  state_ = InstanceState::kReady;
  loading_.clear();
  bool is_fresh = false;
  for (Slot& slot : slots_) {
    is_fresh |= !std::exchange(slot.has_loaded, true);
    slot.failures = 0;
  }
  shape_ = slots_[0].ready;
  ready_at_ = clock_.now();
  progress_.begin_epoch(ready_at_, is_fresh);
  TANDEM_LOG(kInfo, "instance {} is ready: epoch {}, {} ranks", options_.name, epoch_,
             options_.ranks);
  pump();
}

// Hands over what may go to the engine.
void Instance::pump() {
  if (state_ != InstanceState::kReady) return;
  if (requests_.with_engine() == 0) progress_.idle(clock_.now());
  RequestTable::Submissions submissions = requests_.take_submissions(clock_.now());
  deliver(std::move(submissions.ended));
  for (gen::Request& request : submissions.requests) {
    send(slots_[0], plan::Submit{.epoch = epoch_, .request = std::move(request)});
  }
}

// A rank is lost: whatever still runs of it is killed, and its epoch ends.
void Instance::lose_rank(Slot& slot, DeathCause cause, const std::string& why) {
  const std::string reason = fmt::format("rank {} {}", rank_of(slot), why);
  const RankState before = slot.state;
  slot.is_linked = false;
  ++deaths_[static_cast<size_t>(cause)];
  if (cause == DeathCause::kExit) {
    enter(slot, RankState::kGone);
  } else {
    kill(slot);
  }
  const bool was_in_epoch = before == RankState::kForming || before == RankState::kReady;
  if (was_in_epoch && is_in_epoch()) return lose_epoch(EpochEnd::kRankLost, reason);
  TANDEM_LOG(kWarn, "instance {}: {}", options_.name, reason);
  if (state_ != InstanceState::kStarting && state_ != InstanceState::kReforming) return;
  if (before == RankState::kAborting) return;  // the epoch it was in was counted
  trouble_ = reason;
  count_failure(++slot.failures, reason);
}

void Instance::lose_epoch(EpochEnd end, const std::string& why) {
  TANDEM_LOG(kWarn, "instance {}: epoch {} is lost: {}", options_.name, epoch_, why);
  trouble_ = why;
  ++lost_epochs_;
  ++ends_[static_cast<size_t>(end)];
  if (state_ == InstanceState::kReady) {
    deliver(requests_.end_epoch(clock_.now()));
    state_ = InstanceState::kReforming;
    if (clock_.now() - ready_at_ >= options_.barren_window) barren_ = 0;
  }
  is_forming_ = false;
  if (std::exchange(blamed_, requests_.blamed()) != requests_.blamed()) {
    barren_ = 0;  // the cause may have gone
  }
  for (Slot& slot : slots_) {
    if (slot.state != RankState::kForming && slot.state != RankState::kReady) continue;
    drop_epoch(slot);
  }
  count_failure(++barren_, why);
}

// A process whose group ends with it may hang in a collective that has no deadline.
void Instance::drop_epoch(Slot& slot) {
  if (plan::ends_with_process(options_.comm)) return kill(slot);
  send(slot, plan::Abort{.epoch = epoch_});
  enter(slot, RankState::kAborting);
}

void Instance::count_failure(uint32_t count, const std::string& why) {
  if (state_ == InstanceState::kStarting && count > options_.failed_starts_allowed) {
    return give_up(fmt::format("{} starts failed, the last because {}", count, why));
  }
  if (count > options_.barren_allowed) {
    give_up(fmt::format("it broke down {} times in a row without a token, the last time because {}",
                        count, why));
  }
}

void Instance::give_up(const std::string& why) {
  TANDEM_LOG(kError, "instance {} has failed: {}", options_.name, why);
  trouble_ = why;
  state_ = InstanceState::kFailed;
  is_forming_ = false;
  for (Slot& slot : slots_) {
    if (slot.state != RankState::kGone && slot.state != RankState::kEnding) kill(slot);
  }
  deliver(requests_.fail_all({ErrorCode::kUnavailable, "the instance has failed: " + why}));
}

Duration Instance::backoff(const Slot& slot) const {
  const uint32_t failures = std::max(barren_, slot.failures);
  if (failures <= 1) return Duration{};
  const uint32_t doublings = std::min(failures - 2, 16U);
  return std::min(options_.first_backoff * (int64_t{1} << doublings), options_.longest_backoff);
}

}  // namespace tandem::control
