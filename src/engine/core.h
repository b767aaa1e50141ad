// Core: the engine without its thread: receive, schedule, run, process.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/result.h"
#include "base/workers.h"
#include "engine/options.h"
#include "engine/runner.h"
#include "engine/step_clock.h"
#include "engine/token_masks.h"
#include "gen/generator.h"
#include "sample/sampler.h"
#include "schedule/scheduler.h"

namespace tandem::engine {

/// What every accepted request must satisfy. Errors: kInvalid, kTooLarge, kUnsupported (a grammar,
/// where there are no constraints).
Status check_request(const gen::Request& request,
                     const gen::Limits& limits,
                     bool has_constraints = false);

/// Owns the scheduler and all request state; borrows the runner and the clock. Driven step by step,
/// so that tests run it in virtual time. Begins suspended. One thread.
class Core {
 public:
  Core(Runner& runner, const Clock& clock, EngineOptions options);

  /// Called with each request that ends or is dropped, before its last event.
  std::function<void(gen::RequestId)> on_end;

  /// Runs a task soon on the thread of the core; called on any thread. Unset: tasks run at once, on
  /// the caller's, so constraints must be made there; masks are made on the core's.
  std::function<void(std::function<void()>)> defer;

  gen::Limits limits() const;

  /// Takes a request that check_request() accepts and whose id is not live. While suspended it is
  /// dropped at once as options.resumable says. One with a grammar runs once its constraint is
  /// there; meanwhile nothing waits for it.
  void submit(gen::Request request, gen::Sink sink);

  /// Before the next step. Unknown ids are ignored.
  void cancel(gen::RequestId id);

  /// Ends what is past its deadline and issues as many steps as may be in flight.
  void issue();

  /// Completes the oldest step and delivers what it gave. False when none was in flight or it
  /// failed: then there is nothing to do until the next message.
  bool complete();

  /// Both.
  bool step() { return issue(), complete(); }

  /// Drops or fails the epoch's requests (see EngineOptions::resumable), then begins an epoch on
  /// the runner. On an error the core stays suspended.
  Status reset(uint32_t epoch);

  /// Drops or fails the epoch's requests with this error; nothing runs until reset().
  void suspend(const Error& why);

  /// When issue() has something to do though nothing is in flight.
  std::optional<TimePoint> next_deadline() const;

  bool suspended() const { return scheduler_ == nullptr; }
  bool empty() const { return live_.empty(); }
  EngineStats stats() const;
  const schedule::Scheduler* scheduler() const { return scheduler_.get(); }

 private:
  struct Live {
    gen::Sink sink;
    std::optional<TimePoint> deadline;
    uint32_t prefilled = 0;  // reported so far
    sample::PenaltyMemory penalties = {};
    std::vector<double> pooled = {};              // sums of hidden states, or the last one
    std::optional<gen::Request> preparing = {};   // until its constraint is there
    uint64_t preparation = 0;                     // which one: an id may come again
    std::unique_ptr<TokenMasks> masks = {};       // of requests with a grammar
    std::optional<std::vector<float>> late = {};  // logits that wait for their mask
  };

  struct InFlight {
    std::vector<schedule::PlannedRow> rows;
    TimePoint issued;
    double work = 0;
  };

  bool is_answered(const gen::Request& request);
  void prepare(gen::Request request);
  void prepared(gen::RequestId id, uint64_t preparation, Result<TokenMasks::Prepared> made);
  bool issue_next();
  void process(const InFlight& step, const StepResult& result);
  std::optional<TokenMasks::Mask> mask_of(gen::RequestId id, const Live& live);
  void draw_late(gen::RequestId id, uint64_t preparation);
  void draw(schedule::Sequence& sequence, std::span<const float> logits);
  void pool(const schedule::PlannedRow& row,
            const schedule::Sequence& sequence,
            std::span<const float> sums);
  void take_drawn(schedule::Sequence& sequence, gen::TokenId id);
  void take(schedule::Sequence& sequence, gen::Token token);
  void expire();
  void fault(const Error& error);
  void deliver(gen::RequestId id, decltype(gen::Event::body) body);
  void end(gen::RequestId id, decltype(gen::Event::body) body);
  void forget(gen::RequestId id);
  void drop_scheduler();

  Runner& runner_;
  const Clock& clock_;
  const EngineOptions options_;
  RunnerInfo info_;
  std::unique_ptr<schedule::Scheduler> scheduler_;  // null while suspended
  std::unordered_map<gen::RequestId, Live> live_;
  std::set<std::pair<TimePoint, gen::RequestId>> deadlines_;
  std::deque<InFlight> in_flight_;
  sample::Sampler sampler_;
  uint64_t preparations_ = 0;  // ever begun
  uint32_t preparing_ = 0;     // requests now
  uint32_t late_ = 0;          // requests whose logits wait for a mask
  StepClock step_clock_;
  uint32_t epoch_ = 0;
  uint64_t sequence_ = 0;  // of the next plan
  TimePoint last_completion_;
  EngineStats stats_;
  Histogram step_times_{token_times()};
  schedule::SchedulerCounts past_;  // totals of epochs that are over
  Workers mask_workers_{4};         // no thread before the first grammar
};

}  // namespace tandem::engine
