#include "engine/core.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace tandem::engine {
namespace {

schedule::SchedulerOptions sized(schedule::SchedulerOptions options, const RunnerInfo& info) {
  options.pages = info.pages;
  options.page_tokens = info.page_tokens;
  options.max_context = info.max_context;
  options.window = info.window;
  options.window_pages = info.window_pages;
  options.state_slots = info.state_slots;
  options.state_step = info.state_step;
  options.depth = info.depth;
  options.step_tokens = std::min(options.step_tokens, info.step_tokens);
  options.draws = info.draws;
  return options;
}

bool stops(const gen::Request& request, gen::TokenId token) {
  const auto& stop = request.stop_ids;
  return !request.ignore_eos && std::find(stop.begin(), stop.end(), token) != stop.end();
}

/// Whether the mask, if there is one, has no bits but these.
bool allows_only(std::span<const uint32_t> mask, const std::vector<gen::TokenId>& ids) {
  size_t bits = 0, listed = 0;
  for (const uint32_t word : mask) bits += static_cast<size_t>(std::popcount(word));
  for (const gen::TokenId id : std::set<gen::TokenId>(ids.begin(), ids.end())) {
    const auto at = static_cast<size_t>(id);
    if (at / 32 < mask.size()) listed += mask[at / 32] >> (at % 32) & 1U;
  }
  return bits > 0 && bits == listed;
}

}  // namespace

Core::Core(Runner& runner, const Clock& clock, EngineOptions options)
    : runner_(runner), clock_(clock), options_(std::move(options)), info_(runner.info()) {}

gen::Limits Core::limits() const {
  const uint64_t pool = uint64_t{info_.pages} * info_.page_tokens;
  return {.vocab = info_.vocab,
          .max_context = static_cast<uint32_t>(std::min<uint64_t>(info_.max_context, pool)),
          .chooses_blocks = info_.chooses_blocks,
          .hidden = info_.hidden};
}

void Core::submit(gen::Request request, gen::Sink sink) {
  const gen::RequestId id = request.id;
  Live live{.sink = std::move(sink), .deadline = {}};
  if (request.deadline) live.deadline = clock_.now() + *request.deadline;
  const bool is_new = live_.emplace(id, std::move(live)).second;
  TANDEM_CHECK(is_new, "request {} is live already", id);
  if (suspended()) {
    if (options_.resumable) return forget(id);
    return end(id, gen::Failed{{.code = ErrorCode::kUnavailable, .message = "[engine] suspended"}});
  }
  // Again, since a reset may have changed the limits on the way here.
  if (const Status status = check_request(request, limits(), options_.constraints != nullptr);
      !status) {
    return end(id, gen::Failed{status.error()});
  }
  if (!request.pooling && is_answered(request)) return;
  if (const auto& deadline = live_.at(id).deadline) deadlines_.emplace(*deadline, id);
  if (request.grammar) return prepare(std::move(request));
  scheduler_->add(std::move(request), clock_.now());
}

/// Whether a resumed request has all of its answer: then it ends here.
bool Core::is_answered(const gen::Request& request) {
  const auto answered = static_cast<uint32_t>(request.emitted.size());
  if (answered > 0 && stops(request, request.emitted.back())) {
    end(request.id, gen::Finished{gen::FinishReason::kStop});
    return true;
  }
  const uint32_t room = limits().max_context - static_cast<uint32_t>(request.prompt.size());
  if (answered < std::min(request.max_tokens, room)) return false;
  end(request.id, gen::Finished{gen::FinishReason::kLength});
  return true;
}

/// The factory's thread takes what was emitted and makes the first mask too.
void Core::prepare(gen::Request request) {
  const gen::RequestId id = request.id;
  // An empty one stays: the host is to draw.
  const gen::Grammar grammar = *std::exchange(request.grammar, gen::Grammar());
  Live& live = live_.at(id);
  live.preparation = ++preparations_;
  auto made = [this, id, defer = defer, preparation = live.preparation,
               emitted = request.emitted](Result<std::unique_ptr<gen::Constraint>> constraint) {
    auto first = constraint ? TokenMasks::prepare(*std::move(constraint), emitted)
                            : Result<TokenMasks::Prepared>(constraint.error());
    // Shared, since tasks can be copied.
    auto kept = std::make_shared<Result<TokenMasks::Prepared>>(std::move(first));
    auto task = [this, id, preparation, kept] { prepared(id, preparation, std::move(*kept)); };
    defer ? defer(std::move(task)) : task();
  };
  live.preparing = std::move(request);
  ++preparing_;
  options_.constraints->make(grammar, std::move(made));
}

void Core::prepared(gen::RequestId id, uint64_t preparation, Result<TokenMasks::Prepared> made) {
  const auto found = live_.find(id);
  if (found == live_.end() || found->second.preparation != preparation) return;  // ended meanwhile
  if (!made) return end(id, gen::Failed{made.error()});
  Live& live = found->second;
  // Without a way back to this thread they are made on it.
  live.masks = std::make_unique<TokenMasks>(*std::move(made), defer ? &mask_workers_ : nullptr);
  --preparing_;
  scheduler_->add(*std::exchange(live.preparing, std::nullopt), clock_.now());
}

void Core::cancel(gen::RequestId id) {
  if (live_.contains(id)) end(id, gen::Cancelled{});
}

void Core::issue() {
  expire();
  while (!suspended() && in_flight_.size() < info_.depth && issue_next()) {
  }
}

bool Core::issue_next() {
  plan::StepPlan* plan = scheduler_->next(clock_.now());
  if (plan == nullptr) return false;
  plan->epoch = epoch_;
  plan->sequence = sequence_++;
  const double work = StepClock::work(*plan);
  // Said before the step begins: should it end this process, the head knows who was in it.
  for (const schedule::PlannedRow& row : scheduler_->rows()) {
    if (row.starts) deliver(row.request, gen::Started{row.cached_tokens});
  }
  const Status status = runner_.issue(*plan);
  scheduler_->returned();
  if (!status) {
    fault(status.error());
    return false;
  }
  in_flight_.push_back({.rows = scheduler_->rows(), .issued = clock_.now(), .work = work});
  return true;
}

bool Core::complete() {
  if (suspended()) return false;
  if (in_flight_.empty()) {
    const schedule::SchedulerCounts now = scheduler_->counts();
    TANDEM_CHECK(scheduler_->empty() || late_ > 0,
                 "nothing can be planned for {} waiting, {} paused, {} running requests; pages: {} "
                 "free, {} cached, {} referenced",
                 now.waiting, now.paused, now.running, now.pages.free, now.pages.cached,
                 now.pages.referenced);
    return false;
  }
  const Result<StepResult> result = runner_.complete();
  if (!result) {
    fault(result.error());
    return false;
  }
  const InFlight step = std::move(in_flight_.front());
  in_flight_.pop_front();
  const TimePoint now = clock_.now();
  const Duration took = now - std::max(step.issued, last_completion_);
  step_clock_.record(step.work, took);
  step_times_.add(std::chrono::duration<double>(took).count());
  stats_.step_time += took;
  last_completion_ = now;
  stats_.last_step = now - step.issued;
  ++stats_.steps;
  stats_.rows += step.rows.size();
  process(step, *result);
  return true;
}

void Core::process(const InFlight& step, const StepResult& result) {
  size_t rows_of_logits = 0, tokens_drawn = 0, rows_pooled = 0;
  for (const schedule::PlannedRow& row : step.rows) {
    const size_t at = row.draws ? tokens_drawn : row.pools ? rows_pooled : rows_of_logits;
    rows_of_logits += row.wants_logits;
    tokens_drawn += row.draws;
    rows_pooled += row.pools;
    schedule::Sequence* sequence = scheduler_->find(row.request);
    if (sequence == nullptr || sequence->serial != row.serial) continue;  // ended meanwhile
    Live& live = live_.at(row.request);
    if (row.prefilled > live.prefilled) {
      stats_.prompt_tokens += row.prefilled - live.prefilled;
      live.prefilled = row.prefilled;
    }
    if (row.prefilled > 0) {
      deliver(row.request, gen::Prefilled{.done = live.prefilled, .total = sequence->prompt});
    }
    if (row.pools) {
      TANDEM_CHECK(result.pooled.size() >= (at + 1) * info_.hidden,
                   "expected hidden states of row {}, got {} values", at, result.pooled.size());
      pool(row, *sequence, result.pooled.subspan(at * info_.hidden, info_.hidden));
    }
    if (row.draws) {
      TANDEM_CHECK(result.drawn.size() > at, "expected the token of row {}, got {}", at,
                   result.drawn.size());
      take_drawn(*sequence, result.drawn[at]);
    }
    if (!row.wants_logits) continue;
    TANDEM_CHECK(result.logits.size() >= (at + 1) * info_.vocab,
                 "expected logits of row {}, got {} values", at, result.logits.size());
    draw(*sequence, result.logits.subspan(at * info_.vocab, info_.vocab));
  }
}

/// Rows of a prompt come in order; one that was paused begins again at its first position.
void Core::pool(const schedule::PlannedRow& row,
                const schedule::Sequence& sequence,
                std::span<const float> sums) {
  std::vector<double>& all = live_.at(row.request).pooled;
  if (row.start == 0 || all.empty()) all.assign(sums.size(), 0);
  for (size_t i = 0; i < sums.size(); ++i) all[i] += static_cast<double>(sums[i]);
  if (row.prefilled < sequence.prompt) return;
  const bool is_mean = sequence.request.pooling == gen::Pooling::kMean;
  const double count = is_mean ? sequence.prompt : 1;
  gen::Embedding out;
  for (const double sum : all) out.values.push_back(static_cast<float>(sum / count));
  deliver(row.request, std::move(out));
  end(row.request, gen::Finished{gen::FinishReason::kStop});
}

/// What a bound row may draw; nothing while its mask is being made.
std::optional<TokenMasks::Mask> Core::mask_of(gen::RequestId id, const Live& live) {
  if (!live.masks) return std::span<const uint32_t>();
  return live.masks->next([this, id, defer = defer, preparation = live.preparation] {
    defer([this, id, preparation] { draw_late(id, preparation); });
  });
}

/// The row's mask came after its logits.
void Core::draw_late(gen::RequestId id, uint64_t preparation) {
  const auto found = live_.find(id);
  if (found == live_.end() || found->second.preparation != preparation) return;  // ended meanwhile
  const std::vector<float> logits = *std::exchange(found->second.late, std::nullopt);
  --late_;
  draw(*scheduler_->find(id), logits);
}

/// Where the mask is not there yet, the row keeps its logits and misses steps until it is; others
/// go on.
void Core::draw(schedule::Sequence& sequence, std::span<const float> logits) {
  const gen::Request& request = sequence.request;
  Live& live = live_.at(request.id);
  const auto mask = mask_of(request.id, live);
  if (!mask) {
    live.late.emplace(logits.begin(), logits.end());
    ++late_;
    return;
  }
  const TokenMasks::Mask& allowed = *mask;
  if (!allowed) return end(request.id, gen::Failed{allowed.error()});
  const bool too_early = !request.ignore_eos && sequence.answer() < request.min_tokens &&
                         !allows_only(*allowed, request.stop_ids);
  Result<gen::Token> token =
      sampler_.draw({.logits = logits,
                     .history = sequence.tokens,
                     .sampling = request.sampling,
                     .banned = too_early ? std::span<const gen::TokenId>(request.stop_ids)
                                         : std::span<const gen::TokenId>(),
                     .logprobs = request.logprobs,
                     .allowed = *allowed,
                     .penalties = &live.penalties});
  if (!token) return end(request.id, gen::Failed{token.error()});
  take(sequence, *std::move(token));
}

void Core::take_drawn(schedule::Sequence& sequence, gen::TokenId id) {
  if (id >= 0) return take(sequence, {.id = id});
  end(sequence.request.id,
      gen::Failed{{.code = ErrorCode::kInternal, .message = std::string(sample::kNoFiniteLogit)}});
}

/// A row that went on with this token is in flight already when the device drew it: when the answer
/// ends here, that row's result finds no sequence.
void Core::take(schedule::Sequence& sequence, gen::Token token) {
  const gen::Request& request = sequence.request;
  const gen::RequestId id = request.id;
  const gen::TokenId drawn = token.id;
  scheduler_->append(sequence, drawn);
  ++stats_.answer_tokens;
  gen::Tokens tokens;
  tokens.tokens.push_back(std::move(token));
  deliver(id, std::move(tokens));
  if (stops(request, drawn)) return end(id, gen::Finished{gen::FinishReason::kStop});
  if (sequence.length() == sequence.limit) {
    return end(id, gen::Finished{gen::FinishReason::kLength});
  }
  if (const auto& masks = live_.at(id).masks) masks->take(drawn);
}

void Core::expire() {
  while (!deadlines_.empty() && deadlines_.begin()->first <= clock_.now()) {
    end(deadlines_.begin()->second,
        gen::Failed{{.code = ErrorCode::kDeadline, .message = "the request's time is over"}});
  }
}

std::optional<TimePoint> Core::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

Status Core::reset(uint32_t epoch) {
  suspend({.code = ErrorCode::kPeerLost, .message = "[engine] the epoch ended"});
  if (Status status = runner_.reset(epoch); !status) return status;
  info_ = runner_.info();
  scheduler_ = std::make_unique<schedule::Scheduler>(sized(options_.schedule, info_));
  epoch_ = epoch;
  sequence_ = 0;
  return {};
}

void Core::suspend(const Error& why) {
  drop_scheduler();
  in_flight_.clear();
  while (!live_.empty()) {
    const gen::RequestId id = live_.begin()->first;
    if (options_.resumable) {
      forget(id);
    } else {
      end(id, gen::Failed{why});
    }
  }
}

void Core::drop_scheduler() {
  if (scheduler_ == nullptr) return;
  const schedule::SchedulerCounts last = scheduler_->counts();
  past_.pauses += last.pauses;
  past_.reused_tokens += last.reused_tokens;
  past_.computed_tokens += last.computed_tokens;
  past_.window_pages_left += last.window_pages_left;
  scheduler_.reset();
}

void Core::fault(const Error& error) {
  suspend(error);
  if (options_.on_fault) options_.on_fault(error);
}

void Core::deliver(gen::RequestId id, decltype(gen::Event::body) body) {
  live_.at(id).sink({.request = id, .body = std::move(body)});
}

void Core::end(gen::RequestId id, decltype(gen::Event::body) body) {
  const gen::Sink sink = live_.at(id).sink;
  forget(id);
  sink({.request = id, .body = std::move(body)});
}

void Core::forget(gen::RequestId id) {
  if (scheduler_ != nullptr && scheduler_->find(id) != nullptr) scheduler_->remove(id);
  const Live& live = live_.at(id);
  if (live.deadline) deadlines_.erase({*live.deadline, id});
  if (live.preparing) --preparing_;
  if (live.late) --late_;
  live_.erase(id);
  if (on_end) on_end(id);
}

EngineStats Core::stats() const {
  EngineStats stats = stats_;
  stats.epoch = epoch_;
  stats.serving = !suspended();
  stats.live = static_cast<uint32_t>(live_.size());
  stats.awaiting_grammars = preparing_ + late_;
  stats.busy = stats.live > stats.awaiting_grammars;
  stats.steps_in_flight = static_cast<uint32_t>(in_flight_.size());
  if (!in_flight_.empty()) stats.predicted_step = step_clock_.predict(in_flight_.front().work);
  stats.step_counts = step_times_.counts();
  if (scheduler_ != nullptr) stats.schedule = scheduler_->counts();
  stats.schedule.waiting += preparing_;
  stats.schedule.pauses += past_.pauses;
  stats.schedule.reused_tokens += past_.reused_tokens;
  stats.schedule.computed_tokens += past_.computed_tokens;
  stats.schedule.window_pages_left += past_.window_pages_left;
  return stats;
}

}  // namespace tandem::engine
