#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tandem::engine {
namespace {

Error unavailable(const char* why) {
  return {.code = ErrorCode::kUnavailable, .message = fmt::format("[engine] {}", why)};
}

}  // namespace

Engine::Engine(Runner& runner, EngineOptions options)
    : runner_(runner),
      options_(std::move(options)),
      core_(runner,
            clock_,
            {.schedule = options_.schedule,
             .queue = options_.queue,
             .resumable = options_.resumable,
             .constraints = options_.constraints,
             .on_fault = [this](const Error& error) { refuse_new(error); }}),
      limits_(core_.limits()) {
  core_.on_end = [this](gen::RequestId id) {
    const std::lock_guard lock(mutex_);
    live_.erase(id);
  };
  door_->engine = this;
  core_.defer = [door = door_](Task task) {
    const std::lock_guard lock(door->mutex);
    if (door->engine != nullptr) door->engine->post(std::move(task));
  };
  thread_ = std::thread([this] { run(); });
}

Engine::~Engine() {
  {
    const std::lock_guard lock(door_->mutex);
    door_->engine = nullptr;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    serving_ = false;
    ++suspending_;
  }
  runner_.abort();
  wake_.notify_all();
  thread_.join();
}

/// How many more requests may be accepted now. Rows that are free count while nobody waits for one.
uint32_t Engine::room() const {
  const schedule::SchedulerCounts& now = stats_.schedule;
  const uint32_t rows = options_.schedule.max_rows;
  const bool rows_free = now.waiting == 0 && now.paused == 0 && now.running < rows;
  const uint32_t most = options_.queue + (rows_free ? rows - now.running : 0);
  return most - std::min(most, new_submits_ + now.waiting);
}

Status Engine::submit(gen::Request request, gen::Sink sink) {
  const gen::RequestId id = request.id;
  {
    const std::lock_guard lock(mutex_);
    if (draining_) return unavailable("shutting down");
    if (!serving_) return unavailable("no instance is serving");
    if (Status status = check_request(request, limits_, options_.constraints != nullptr); !status)
      return status;
    if (live_.contains(id)) {
      return Error{.code = ErrorCode::kConflict,
                   .message = fmt::format("[engine] request {} is live already", id)};
    }
    if (room() == 0) {
      return Error{.code = ErrorCode::kBusy,
                   .message = fmt::format("[engine] the queue of {} is full", options_.queue)};
    }
    live_.insert(id);
    ++new_submits_;
    mailbox_.push_back([this, request = std::move(request), sink = std::move(sink)]() mutable {
      core_.submit(std::move(request), std::move(sink));
    });
  }
  wake_.notify_one();
  return {};
}

void Engine::cancel(gen::RequestId id) {
  post([this, id] { core_.cancel(id); });
}

gen::Limits Engine::limits() const {
  const std::lock_guard lock(mutex_);
  return limits_;
}

EngineStats Engine::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void Engine::reset(uint32_t epoch, std::function<void(Status)> done) {
  post([this, epoch, done = std::move(done)] {
    const Status status = core_.reset(epoch);
    {
      const std::lock_guard lock(mutex_);
      serving_ = status.has_value() && suspending_ == 0;
      limits_ = core_.limits();
    }
    publish(0);
    if (done) done(status);
  });
}

void Engine::suspend(std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    serving_ = false;
    ++suspending_;
  }
  runner_.abort();
  post([this, done = std::move(done)] {
    core_.suspend(unavailable("suspended"));
    {
      const std::lock_guard lock(mutex_);
      --suspending_;
    }
    publish(0);
    if (done) done();
  });
}

void Engine::drain(std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
  }
  post([this, done = std::move(done)]() mutable { when_empty_.push_back(std::move(done)); });
}

void Engine::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    mailbox_.push_back(std::move(task));
  }
  wake_.notify_one();
}

/// The core faulted. Told to the owner only when it did not ask for it.
void Engine::refuse_new(const Error& why) {
  bool asked_for = false;
  {
    const std::lock_guard lock(mutex_);
    serving_ = false;
    asked_for = suspending_ > 0;
  }
  publish(0);
  if (!asked_for && options_.on_fault) options_.on_fault(why);
}

void Engine::publish(uint32_t taken) {
  EngineStats stats = core_.stats();
  const std::lock_guard lock(mutex_);
  new_submits_ -= taken;
  stats.live = static_cast<uint32_t>(live_.size());
  stats.busy = stats.live > stats.awaiting_grammars;
  stats_ = stats;
}

/// Until a message or the next deadline comes.
void Engine::wait_for_work(std::unique_lock<std::mutex>& lock) {
  const auto has_work = [this] { return !mailbox_.empty() || stopping_; };
  if (const auto deadline = core_.next_deadline()) {
    wake_.wait_until(lock, *deadline, has_work);
  } else {
    wake_.wait(lock, has_work);
  }
}

void Engine::run() {
  bool working = false;
  while (true) {
    std::unique_lock lock(mutex_);
    if (!working) wait_for_work(lock);
    const std::vector<Task> tasks = std::exchange(mailbox_, {});
    const uint32_t submits = new_submits_;
    const bool stopping = stopping_;
    lock.unlock();
    for (const Task& task : tasks) task();
    if (stopping) return core_.suspend(unavailable("stopped"));
    publish(submits);
    core_.issue();
    publish(0);
    working = core_.complete();
    publish(0);
    after_work();
  }
}

/// When the last request has ended: pages must balance, and drain() is done.
void Engine::after_work() {
  if (!core_.empty()) {
    checked_ = false;
    return;
  }
  if (!std::exchange(checked_, true) && !core_.suspended()) {
    TANDEM_CHECK(core_.scheduler()->is_consistent(), "pages do not balance");
  }
  for (const Task& done : std::exchange(when_empty_, {})) {
    if (done) done();
  }
}

}  // namespace tandem::engine
