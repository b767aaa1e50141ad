#include "app/rank/leader.h"

#include <utility>

#include "base/log.h"

namespace tandem::app {

Leader::Leader(RankModel& model,
               cluster::FollowerLinks& links,
               std::optional<plan::PlanLogWriter> log,
               Say say,
               const schedule::SchedulerOptions& schedule)
    : model_(model),
      links_(links),
      say_(std::move(say)),
      lockstep_(model, links, {.on_fault = [this](const Error& why) { fault(epoch_, why); }}),
      recording_(lockstep_, std::move(log)),
      engine_(recording_,
              {.schedule = schedule,
               .resumable = true,
               .constraints = model.constraints(),
               .on_fault = [this](const Error& why) { fault(epoch_, why); }}) {}

void Leader::form(const plan::Form& group) {
  const uint32_t epoch = group.epoch;
  epoch_ = epoch;
  model_.prepare(group);
  lockstep_.prepare(group);
  engine_.reset(epoch, [this, epoch](const Status& begun) {
    begun ? ready(epoch) : fault(epoch, begun.error());
  });
}

void Leader::abort(uint32_t epoch) {
  if (epoch != epoch_) return say_(plan::Aborted{.epoch = epoch});
  engine_.suspend([this, epoch] {
    links_.close();
    say_(plan::Aborted{.epoch = epoch});
  });
}

void Leader::submit(plan::Submit submit) {
  const uint32_t epoch = submit.epoch;
  const gen::RequestId id = submit.request.id;
  const Status taken =
      epoch == epoch_
          ? engine_.submit(std::move(submit.request),
                           [this, epoch](gen::Event event) {
                             say_(plan::Report{.epoch = epoch, .events = {std::move(event)}});
                           })
          : Status(Error{ErrorCode::kConflict,
                         fmt::format("epoch {} is over, this is {}", epoch, epoch_.load())});
  if (!taken) say_(plan::Refused{.epoch = epoch, .request = id, .error = taken.error()});
}

void Leader::cancel(const plan::Cancel& cancel) {
  if (cancel.epoch == epoch_) engine_.cancel(cancel.request);
}

void Leader::drain() {
  engine_.drain([this] { say_(plan::Drained{}); });
}

plan::Beat Leader::beat() const {
  const engine::EngineStats stats = engine_.stats();
  return {.epoch = epoch_,
          .steps = recording_.steps(),
          .busy = stats.busy,
          .predicted_step = stats.predicted_step};
}

std::optional<plan::EngineFigures> Leader::figures() const {
  const engine::EngineStats stats = engine_.stats();
  const schedule::SchedulerCounts& now = stats.schedule;
  return plan::EngineFigures{.waiting = now.waiting,
                             .paused = now.paused,
                             .running = now.running,
                             .pages = now.pages,
                             .window_pages = now.window_pages,
                             .states = now.states,
                             .totals = {.steps = stats.steps,
                                        .rows = stats.rows,
                                        .answer_tokens = stats.answer_tokens,
                                        .prompt_tokens = stats.prompt_tokens,
                                        .reused_tokens = now.reused_tokens,
                                        .computed_tokens = now.computed_tokens,
                                        .pauses = now.pauses,
                                        .window_pages_left = now.window_pages_left,
                                        .step_time = stats.step_time,
                                        .step_counts = stats.step_counts}};
}

void Leader::ready(uint32_t epoch) {
  const engine::RunnerInfo info = recording_.info();
  say_(plan::Ready{.epoch = epoch,
                   .limits = {.vocab = info.vocab, .max_context = info.max_context},
                   .pages = info.pages,
                   .page_tokens = info.page_tokens,
                   .depth = info.depth});
}

void Leader::fault(uint32_t epoch, const Error& why) {
  if (faulted_.exchange(epoch) == epoch) return;
  TANDEM_LOG(kWarn, "epoch {} broke: {}", epoch, why.message);
  say_(plan::Fault{.epoch = epoch, .error = why});
}

}  // namespace tandem::app
