#include "engine/engine.h"

#include <doctest/doctest.h>
#include <time.h>

#include <algorithm>
#include <future>
#include <map>

#include "engine/fake_runner.h"

using namespace tandem;
using namespace tandem::engine;
using namespace std::chrono_literals;
using Ids = std::vector<gen::TokenId>;

namespace {

/// Collects a request's events; done() is ready when the last one came.
class Reader {
 public:
  gen::Sink sink() {
    return [this](gen::Event event) {
      const bool last = event.is_last();
      if (const auto* tokens = std::get_if<gen::Tokens>(&event.body)) {
        for (const auto& token : tokens->tokens) ids_.push_back(token.id);
        if (on_token) on_token();
      }
      events_.push_back(std::move(event));
      if (last) done_.set_value();
    };
  }
  /// The last event; requires that it comes.
  gen::Event wait() {
    REQUIRE(future_.wait_for(20s) == std::future_status::ready);
    return events_.back();
  }
  bool ended() { return future_.wait_for(0s) == std::future_status::ready; }
  const Ids& ids() const { return ids_; }

  std::function<void()> on_token;

 private:
  std::promise<void> done_;
  std::future<void> future_ = done_.get_future();
  std::vector<gen::Event> events_;
  Ids ids_;
};

Ids oracle(Ids history, size_t count, uint32_t vocab = 256) {
  const size_t prompt = history.size();
  while (history.size() < prompt + count) {
    const auto logits = fake_logits(history, vocab);
    history.push_back(
        static_cast<gen::TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  return {history.begin() + static_cast<std::ptrdiff_t>(prompt), history.end()};
}

void start(Engine& engine, uint32_t epoch = 1) {
  std::promise<bool> started;
  engine.reset(epoch, [&](Status status) { started.set_value(status.has_value()); });
  REQUIRE(started.get_future().get());
}

template <class T>
const T* as(const gen::Event& event) {
  return std::get_if<T>(&event.body);
}

bool failed_with(const Status& status, ErrorCode code) {
  return !status && status.error().code == code;
}

double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

TEST_CASE("engine: many requests at once get exactly their solo answers and one end each") {
  FakeRunner runner({.pages = 200});
  Engine engine(runner, {});
  start(engine);
  std::vector<Reader> readers(20);
  for (size_t i = 0; i < readers.size(); ++i) {
    const Ids prompt{static_cast<int>(i), 7, static_cast<int>(2 * i), 100};
    REQUIRE(engine.submit({.id = i, .prompt = prompt, .max_tokens = 40}, readers[i].sink()));
  }
  for (size_t i = 0; i < readers.size(); ++i) {
    const auto last = readers[i].wait();
    REQUIRE(as<gen::Finished>(last) != nullptr);
    CHECK(as<gen::Finished>(last)->reason == gen::FinishReason::kLength);
    CHECK(readers[i].ids() == oracle({static_cast<int>(i), 7, static_cast<int>(2 * i), 100}, 40));
  }
  CHECK(engine.stats().answer_tokens >= 20 * 39);
}

TEST_CASE("engine: no step is longer than its runner wants, and answers do not depend on it") {
  Ids prompt(500);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<gen::TokenId>(i * i % 251);
  for (const uint32_t wanted : {32U, 128U, plan::kStepTokens}) {
    size_t longest = 0;
    FakeRunner runner({.depth = 2,
                       .step_tokens = wanted,
                       .before_complete = [&](const plan::StepPlan& plan) -> Status {
                         size_t tokens = 0;
                         for (const plan::Row& row : plan.rows) tokens += row.tokens.size();
                         longest = std::max(longest, tokens);
                         return {};
                       }});
    Engine engine(runner, {});
    start(engine);
    Reader reader;
    REQUIRE(engine.submit({.id = 1, .prompt = prompt, .max_tokens = 20}, reader.sink()));
    reader.wait();
    CHECK(longest == std::min<size_t>(wanted, prompt.size()));
    CHECK(reader.ids() == oracle(prompt, 20));
  }
}

TEST_CASE("engine: it serves only after reset, and refuses by kind") {
  FakeRunner runner({.max_context = 64, .pages = 8, .step_delay = 1ms});
  Engine engine(runner, {.schedule = {.max_rows = 1}, .queue = 1});
  CHECK(failed_with(engine.submit({.id = 1, .prompt = {1}}, [](auto) {}), ErrorCode::kUnavailable));
  start(engine);
  CHECK(engine.limits() == gen::Limits{.vocab = 256, .max_context = 64, .hidden = 8});
  CHECK(failed_with(engine.submit({.id = 1}, [](auto) {}), ErrorCode::kInvalid));
  CHECK(failed_with(engine.submit({.id = 1, .prompt = {256}}, [](auto) {}), ErrorCode::kInvalid));
  CHECK(
      failed_with(engine.submit({.id = 1, .prompt = Ids(64)}, [](auto) {}), ErrorCode::kTooLarge));
  CHECK(failed_with(engine.submit({.id = 1, .prompt = {1}, .sampling = {.top_p = 2}}, [](auto) {}),
                    ErrorCode::kInvalid));
  Reader a, b;
  REQUIRE(engine.submit({.id = 1, .prompt = {1}}, a.sink()));
  CHECK(failed_with(engine.submit({.id = 1, .prompt = {1}}, [](auto) {}), ErrorCode::kConflict));
  REQUIRE(engine.submit({.id = 2, .prompt = {1}}, b.sink()));
  CHECK(failed_with(engine.submit({.id = 3, .prompt = {1}}, [](auto) {}), ErrorCode::kBusy));
  CHECK(as<gen::Finished>(a.wait())->reason == gen::FinishReason::kLength);
  CHECK(a.ids().size() == 63);
  b.wait();
}

TEST_CASE("engine: cancel ends a request before the next step and touches no other") {
  FakeRunner runner({.step_delay = 2ms});
  Engine engine(runner, {});
  start(engine);
  Reader cancelled, other;
  cancelled.on_token = [&] {
    if (cancelled.ids().size() == 5) engine.cancel(1);
  };
  REQUIRE(engine.submit({.id = 1, .prompt = {1, 2, 3}, .max_tokens = 1000}, cancelled.sink()));
  REQUIRE(engine.submit({.id = 2, .prompt = {4, 5}, .max_tokens = 30}, other.sink()));
  engine.cancel(77);
  CHECK(as<gen::Cancelled>(cancelled.wait()) != nullptr);
  CHECK(cancelled.ids().size() == 5);
  CHECK(as<gen::Finished>(other.wait()) != nullptr);
  CHECK(other.ids() == oracle({4, 5}, 30));
}

TEST_CASE(
    "engine: after a fault a resumable request goes on where it was, nothing lost or sent twice") {
  std::atomic<int> steps = 0;
  FakeRunner runner({.before_complete = [&](const plan::StepPlan&) -> Status {
    if (++steps == 12) return Error{.code = ErrorCode::kPeerLost, .message = "test"};
    return {};
  }});
  std::promise<Error> fault;
  Engine engine(runner,
                {.resumable = true, .on_fault = [&](const Error& e) { fault.set_value(e); }});
  start(engine);
  Reader first, second;
  const gen::Sampling sampling{.temperature = 0.8F, .seed = 5};
  REQUIRE(engine.submit({.id = 1, .prompt = {9, 9, 1}, .sampling = sampling, .max_tokens = 50},
                        first.sink()));
  CHECK(fault.get_future().get().code == ErrorCode::kPeerLost);
  CHECK(!first.ended());
  CHECK(failed_with(engine.submit({.id = 2, .prompt = {1}}, [](auto) {}), ErrorCode::kUnavailable));
  start(engine, 2);
  CHECK(engine.stats().serving);
  REQUIRE(engine.submit({.id = 1,
                         .prompt = {9, 9, 1},
                         .emitted = first.ids(),
                         .sampling = sampling,
                         .max_tokens = 50},
                        second.sink()));
  second.wait();
  Ids all = first.ids();
  all.insert(all.end(), second.ids().begin(), second.ids().end());

  FakeRunner calm({});
  Engine undisturbed(calm, {});
  start(undisturbed);
  Reader whole;
  REQUIRE(undisturbed.submit({.id = 1, .prompt = {9, 9, 1}, .sampling = sampling, .max_tokens = 50},
                             whole.sink()));
  whole.wait();
  CHECK(all == whole.ids());
  CHECK(first.ids().size() > 5);
}

TEST_CASE("engine: without resuming, a fault fails every request with its error") {
  FakeRunner runner({.before_complete = [](const plan::StepPlan& plan) -> Status {
    if (plan.sequence < 3) return {};
    return Error{.code = ErrorCode::kDeadline, .message = "test"};
  }});
  Engine engine(runner, {});
  start(engine);
  Reader reader;
  REQUIRE(engine.submit({.id = 1, .prompt = {1}}, reader.sink()));
  CHECK(as<gen::Failed>(reader.wait())->error.code == ErrorCode::kDeadline);
}

TEST_CASE("engine: suspend interrupts a long step, is no fault, and reset serves again") {
  FakeRunner runner({.step_delay = 10min});
  std::atomic<int> faults = 0;
  Engine engine(runner, {.resumable = true, .on_fault = [&](const Error&) { ++faults; }});
  start(engine);
  Reader reader;
  REQUIRE(engine.submit({.id = 1, .prompt = {1}}, reader.sink()));
  std::promise<void> suspended;
  engine.suspend([&] { suspended.set_value(); });
  suspended.get_future().get();
  CHECK(!reader.ended());
  CHECK(faults == 0);
  CHECK(!engine.stats().busy);
  start(engine, 2);
  CHECK(engine.submit({.id = 1, .prompt = {1}}, [](auto) {}));
}

TEST_CASE("engine: drain finishes what is there and refuses the rest") {
  FakeRunner runner({.step_delay = 1ms});
  Engine engine(runner, {});
  start(engine);
  Reader reader;
  REQUIRE(engine.submit({.id = 1, .prompt = {3}, .max_tokens = 20}, reader.sink()));
  std::promise<void> drained;
  engine.drain([&] { drained.set_value(); });
  CHECK(failed_with(engine.submit({.id = 2, .prompt = {1}}, [](auto) {}), ErrorCode::kUnavailable));
  drained.get_future().get();
  CHECK(reader.ended());
  CHECK(reader.ids() == oracle({3}, 20));
}

TEST_CASE("engine: its end fails what is live, once") {
  FakeRunner runner({.step_delay = 10min});
  Reader reader;
  {
    Engine engine(runner, {});
    start(engine);
    REQUIRE(engine.submit({.id = 1, .prompt = {1}}, reader.sink()));
  }
  CHECK(as<gen::Failed>(reader.wait()) != nullptr);
}

TEST_CASE("engine: a deadline ends a request with its kind") {
  FakeRunner runner({.step_delay = 2ms});
  Engine engine(runner, {});
  start(engine);
  Reader reader;
  REQUIRE(engine.submit({.id = 1, .prompt = {1}, .deadline = 30ms}, reader.sink()));
  CHECK(as<gen::Failed>(reader.wait())->error.code == ErrorCode::kDeadline);
}

TEST_CASE("engine: logits that are no numbers fail their request alone") {
  class BrokenRow final : public Runner {
   public:
    RunnerInfo info() const override { return inner.info(); }
    Status issue(const plan::StepPlan& plan) override {
      rows.clear();
      for (const auto& row : plan.rows) {
        if (row.wants_logits) rows.push_back(row.request);
      }
      return inner.issue(plan);
    }
    Result<StepResult> complete() override {
      auto result = inner.complete();
      logits.assign(result->logits.begin(), result->logits.end());
      for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] == 1) std::fill_n(logits.begin() + static_cast<long>(i) * 256, 256, NAN);
      }
      result->logits = logits;
      return result;
    }
    Status reset(uint32_t epoch) override { return inner.reset(epoch); }
    void abort() override { inner.abort(); }

    FakeRunner inner{{}};
    std::vector<gen::RequestId> rows;
    std::vector<float> logits;
  };
  BrokenRow runner;
  Engine engine(runner, {});
  start(engine);
  Reader broken, whole;
  REQUIRE(engine.submit({.id = 1, .prompt = {1}, .max_tokens = 9}, broken.sink()));
  REQUIRE(engine.submit({.id = 2, .prompt = {2}, .max_tokens = 9}, whole.sink()));
  const Error why = as<gen::Failed>(broken.wait())->error;
  CHECK(why.code == ErrorCode::kInternal);
  CHECK(why.message.find("logits are not finite") != std::string::npos);
  whole.wait();
  CHECK(whole.ids() == oracle({2}, 9));
}

TEST_CASE("engine: it predicts the step in flight and uses no processor time when idle") {
  std::promise<void> blocked, go;
  std::atomic<int> steps = 0;
  FakeRunner runner({.step_delay = 3ms, .before_complete = [&](const plan::StepPlan&) -> Status {
                       if (++steps == 10) {
                         blocked.set_value();
                         go.get_future().wait();
                       }
                       return {};
                     }});
  Engine engine(runner, {});
  start(engine);
  Reader reader;
  REQUIRE(engine.submit({.id = 1, .prompt = {1}, .max_tokens = 12}, reader.sink()));
  blocked.get_future().wait();
  const EngineStats stats = engine.stats();
  CHECK(stats.busy);
  CHECK(stats.steps_in_flight == 1);
  CHECK(stats.predicted_step > 1ms);
  CHECK(stats.predicted_step < 1s);
  CHECK(stats.steps == 9);
  go.set_value();
  reader.wait();
  const double before = thread_cpu_seconds();
  std::this_thread::sleep_for(200ms);  // the time over which use is measured
  CHECK(thread_cpu_seconds() - before < 0.02);
}

TEST_CASE("engine: where the device draws, each step is issued before the one before completes") {
  int issued_early = 0, completed = 0, ahead = 0;
  class Counting final : public Runner {
   public:
    Counting(int& early, int& done, int& on) : issued_early(early), completed(done), ahead(on) {}
    RunnerInfo info() const override { return inner.info(); }
    Status issue(const plan::StepPlan& plan) override {
      ahead += plan.rows[0].tokens[0] == plan::kDrawn;
      ++in_flight;
      return inner.issue(plan);
    }
    Result<StepResult> complete() override {
      issued_early += in_flight-- > 1;
      ++completed;
      return inner.complete();
    }
    Status reset(uint32_t epoch) override { return inner.reset(epoch); }
    void abort() override { inner.abort(); }

    FakeRunner inner{{.depth = 2, .draws = true}};
    int in_flight = 0;
    int& issued_early;
    int& completed;
    int& ahead;
  };
  Counting runner(issued_early, completed, ahead);
  Reader reader;
  {
    Engine engine(runner, {});
    start(engine);
    REQUIRE(engine.submit({.id = 1, .prompt = {1, 2}, .max_tokens = 30}, reader.sink()));
    CHECK(as<gen::Finished>(reader.wait())->reason == gen::FinishReason::kLength);
  }
  CHECK(reader.ids() == oracle({1, 2}, 30));
  CHECK(completed == 30);  // nothing is planned past max_tokens
  CHECK(issued_early == 29);
  CHECK(ahead == 29);
}

TEST_CASE("engine: a stop id or a cancel discards the step that went on, and its pages balance") {
  FakeRunner runner({.depth = 2, .draws = true});
  Engine engine(runner, {});
  start(engine);
  const Ids whole = oracle({4, 5}, 12);
  Reader stopped, cancelled, next;
  cancelled.on_token = [&] {
    if (cancelled.ids().size() == 5) engine.cancel(2);
  };
  REQUIRE(engine.submit({.id = 1, .prompt = {4, 5}, .stop_ids = {whole[9]}}, stopped.sink()));
  REQUIRE(engine.submit({.id = 2, .prompt = {4, 5}, .max_tokens = 500}, cancelled.sink()));
  CHECK(as<gen::Finished>(stopped.wait())->reason == gen::FinishReason::kStop);
  CHECK(as<gen::Cancelled>(cancelled.wait()) != nullptr);
  CHECK(stopped.ids() == Ids(whole.begin(), whole.begin() + 10));
  CHECK(cancelled.ids() == Ids(whole.begin(), whole.begin() + 5));
  // What was computed serves the next turn, and nothing that was not.
  Ids prompt{4, 5};
  prompt.insert(prompt.end(), whole.begin(), whole.end());
  REQUIRE(engine.submit({.id = 3, .prompt = prompt, .max_tokens = 9}, next.sink()));
  next.wait();
  CHECK(next.ids() == oracle(prompt, 9));
}
