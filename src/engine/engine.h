// Engine: makes tokens on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "engine/core.h"
#include "engine/options.h"
#include "engine/runner.h"
#include "gen/generator.h"

namespace tandem::engine {

/// Runs a Core on one thread; everything else reaches it through a mailbox. Uses no CPU while it
/// has nothing to do. Begins suspended: reset() starts it. The runner is used on the engine's
/// thread only, but for abort(), and must outlive the engine. All callbacks and sinks are called on
/// the engine's thread, without locks held; they may call cancel(), reset(), suspend() and drain(),
/// but must not block.
class Engine final : public gen::Generator {
 public:
  Engine(Runner& runner, EngineOptions options);

  /// Aborts the runner, ends the live requests as suspend() does, and joins the thread.
  ~Engine() override;

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// As gen::Generator says; kUnavailable while suspended or draining. Any thread.
  Status submit(gen::Request request, gen::Sink sink) override;
  void cancel(gen::RequestId id) override;
  gen::Limits limits() const override;

  /// Ends the epoch, if there is one, and begins another: live requests are dropped or failed
  /// (EngineOptions::resumable), the runner is reset, and `done` is told how that went. After an
  /// error the engine stays suspended. Does not interrupt a step: call suspend() before. Any
  /// thread.
  void reset(uint32_t epoch, std::function<void(Status)> done);

  /// Aborts the runner, ends the epoch without calling on_fault, and stays idle until reset(); then
  /// calls `done`. Any thread.
  void suspend(std::function<void()> done);

  /// Refuses new requests from now on and calls `done` when none is live. Any thread.
  void drain(std::function<void()> done);

  /// As of the last step or message. Any thread.
  EngineStats stats() const;

 private:
  using Task = std::function<void()>;

  /// The way in for threads that may outlive the engine.
  struct Door {
    std::mutex mutex;
    Engine* engine = nullptr;  // guarded; null once it is gone
  };

  void run();
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void post(Task task);
  void publish(uint32_t taken_submits);
  void after_work();
  void refuse_new(const Error& why);
  uint32_t room() const;

  Runner& runner_;
  const SteadyClock clock_;
  const EngineOptions options_;
  Core core_;  // engine thread
  const std::shared_ptr<Door> door_ = std::make_shared<Door>();
  std::vector<Task> when_empty_;  // engine thread
  bool checked_ = true;           // engine thread

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_.
  std::vector<Task> mailbox_;
  std::unordered_set<gen::RequestId> live_;
  uint32_t new_submits_ = 0;  // accepted, not yet in stats_
  gen::Limits limits_;
  EngineStats stats_;
  uint32_t suspending_ = 0;  // suspend() calls not yet carried out
  bool serving_ = false;
  bool draining_ = false;
  bool stopping_ = false;

  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace tandem::engine
