#include "app/rank/replica.h"

#include <utility>

#include "base/log.h"

namespace tandem::app {

Replica::Replica(RankModel& model, std::optional<plan::PlanLogWriter> log, Say say)
    : model_(model),
      say_(std::move(say)),
      recording_(model, std::move(log)),
      follower_(recording_),
      thread_([this] { run(); }) {}

Replica::~Replica() {
  follower_.abort();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Replica::form(const plan::Form& group) {
  epoch_ = group.epoch;
  model_.prepare(group);
  const std::lock_guard lock(mutex_);
  form_ = group;
  changed_.notify_all();
}

void Replica::abort(uint32_t epoch) {
  if (epoch != epoch_) return say_(plan::Aborted{.epoch = epoch});
  follower_.abort();  // first: the thread's leave() forgets it
  const std::lock_guard lock(mutex_);
  form_.reset();
  abort_ = epoch;
  changed_.notify_all();
}

void Replica::submit(plan::Submit submit) {
  say_(plan::Refused{.epoch = submit.epoch,
                     .request = submit.request.id,
                     .error = {ErrorCode::kInvalid, "only rank 0 takes requests"}});
}

plan::Beat Replica::beat() const {
  return {.epoch = epoch_,
          .steps = recording_.steps(),
          .busy = follower_.has_work(),
          .predicted_step = recording_.predicted_step()};
}

void Replica::run() {
  for (;;) {
    std::optional<plan::Form> form;
    std::optional<uint32_t> aborted;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || form_ || abort_; });
      if (stopping_) return;
      aborted = std::exchange(abort_, std::nullopt);
      form = std::exchange(form_, std::nullopt);
    }
    if (aborted) {
      follower_.leave();
      say_(plan::Aborted{.epoch = *aborted});
    }
    if (form) serve(*form);
  }
}

void Replica::serve(const plan::Form& group) {
  const Status joined = follower_.join(group);
  Error why;
  if (joined) {
    const engine::RunnerInfo info = recording_.info();
    say_(plan::Ready{.epoch = group.epoch,
                     .limits = {.vocab = info.vocab, .max_context = info.max_context},
                     .pages = info.pages,
                     .page_tokens = info.page_tokens,
                     .depth = info.depth});
    why = follower_.run();
  } else {
    why = joined.error();
  }
  TANDEM_LOG(kInfo, "epoch {} ended: {}", group.epoch, why.message);
  say_(plan::Fault{.epoch = group.epoch, .error = why});
}

}  // namespace tandem::app
