// A mask that is not there when its row's logits are: that row alone waits.
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "base/clock.h"
#include "engine/constraint_test.h"

namespace tandem::engine::constraints {
namespace {

/// Makes constraints at once; their first mask never waits here.
class PromptFactory final : public gen::ConstraintFactory {
 public:
  void make(const gen::Grammar& grammar, Made made) override { made(counting(grammar, masks)); }

  Barrier masks;
};

/// A core whose thread is the test's: what workers want of it waits until the next turn.
struct Turns {
  explicit Turns(FakeOptions fake = {}, schedule::SchedulerOptions schedule = {})
      : runner(fake), core(runner, clock, {.schedule = schedule, .constraints = &factory}) {
    core.defer = [this](std::function<void()> task) {
      const std::lock_guard lock(mutex);
      tasks.push_back(std::move(task));
      came.notify_all();
    };
    REQUIRE(core.reset(1));
  }
  ~Turns() { factory.masks.open(); }

  void submit(const gen::Request& request) {
    core.submit(request, [this, id = request.id](gen::Event event) {
      if (const auto* drawn = std::get_if<gen::Tokens>(&event.body)) {
        for (const auto& token : drawn->tokens) answers[id].push_back(token.id);
      }
      if (event.is_last()) ends[id].push_back(std::move(event));
    });
  }

  /// Whether there were any.
  bool run_tasks() {
    std::deque<std::function<void()>> now;
    {
      const std::lock_guard lock(mutex);
      now.swap(tasks);
    }
    for (const auto& task : now) task();
    return !now.empty();
  }

  /// A step, or where none can be made, until a worker wants something.
  void turn() {
    const bool ran = run_tasks();
    if (core.step() || ran || core.empty()) return;
    std::unique_lock lock(mutex);
    REQUIRE(came.wait_for(lock, 20s, [this] { return !tasks.empty(); }));
  }

  void run_until_ended(std::vector<gen::RequestId> ids) {
    const auto is_open = [this](gen::RequestId id) { return ends[id].empty(); };
    while (std::ranges::any_of(ids, is_open)) turn();
  }

  /// Runs until this many tokens came and the row's logits wait.
  void run_until_late(gen::RequestId id, size_t tokens) {
    while (answers[id].size() < tokens || core.stats().awaiting_grammars == 0) turn();
    CHECK(answers[id].size() == tokens);
  }

  bool finished(gen::RequestId id) {
    return ends[id].size() == 1 && std::holds_alternative<gen::Finished>(ends[id][0].body);
  }

  std::mutex mutex;
  std::condition_variable came;
  std::deque<std::function<void()>> tasks;  // guarded by mutex
  std::map<gen::RequestId, Ids> answers;
  std::map<gen::RequestId, std::vector<gen::Event>> ends;
  PromptFactory factory;
  FakeRunner runner;
  ManualClock clock;
  Core core;
};

gen::Request endless(gen::RequestId id) {
  gen::Request out = request(id, {}, 0);
  out.stop_ids = {};
  return out;
}

const char* const kLate = "3 12 -1 4";  // its fifth token waits

TEST_CASE("late masks: plain rows and other bound ones go on, and every answer is its own") {
  const FakeOptions kinds[] = {{}, {.depth = 3}, {.depth = 3, .draws = true}};
  for (const FakeOptions& fake : kinds) {
    CAPTURE(fake.depth);
    CAPTURE(fake.draws);
    Turns world(fake);
    const gen::Request late = request(1, kLate);
    const gen::Request bound = request(2, "5 20");
    world.submit(late);
    world.submit(bound);
    world.submit(endless(3));
    world.run_until_late(1, 4);
    for (gen::RequestId id = 4; id <= 5; ++id) world.submit(endless(id));
    world.run_until_ended({2, 3, 4, 5});
    CHECK(world.answers[1].size() == 4);
    CHECK(world.answers[5].size() == 30);
    CHECK_FALSE(world.core.stats().busy);
    CHECK(world.core.stats().awaiting_grammars == 1);
    CHECK_FALSE(world.core.step());
    world.factory.masks.open();
    world.run_until_ended({1});
    CHECK(world.finished(1));
    CHECK(world.core.stats().awaiting_grammars == 0);
    CHECK(world.answers[1] == oracle(late));
    CHECK(world.answers[2] == oracle(bound));
    for (gen::RequestId id = 3; id <= 5; ++id) CHECK(world.answers[id] == oracle(endless(id)));
    CHECK(world.core.scheduler()->is_consistent());
  }
}

TEST_CASE("late masks: a row that waits may lose its pages to others, and goes on the same") {
  Turns world({.page_tokens = 4, .pages = 12}, {.admit_answer_tokens = 4});
  gen::Request late = request(2, kLate);
  late.priority = gen::Priority::kLow;
  world.submit(late);
  world.run_until_late(2, 4);
  gen::Request longer = endless(1);
  longer.max_tokens = 40;
  world.submit(longer);
  while (world.ends[1].empty() && world.core.stats().schedule.pauses == 0) world.turn();
  CHECK(world.core.stats().schedule.pauses == 1);
  world.factory.masks.open();
  world.run_until_ended({1, 2});
  CHECK(world.answers[1] == oracle(longer));
  CHECK(world.answers[2] == oracle(late));
  CHECK(world.core.scheduler()->is_consistent());
}

TEST_CASE("late masks: what is cancelled while it waits has ended, whatever its mask says then") {
  Turns world;
  world.submit(request(1, kLate));
  world.run_until_late(1, 4);
  world.core.cancel(1);
  REQUIRE(world.ends[1].size() == 1);
  CHECK(std::holds_alternative<gen::Cancelled>(world.ends[1][0].body));
  CHECK(world.core.empty());
  // The same id again, while the first one's worker still waits.
  world.answers.clear();
  world.ends.clear();
  const gen::Request again = request(1, "2 9");
  world.submit(again);
  world.run_until_ended({1});
  world.factory.masks.open();
  world.run_tasks();
  CHECK(world.finished(1));
  CHECK(world.answers[1] == oracle(again));
  CHECK(world.core.scheduler()->is_consistent());
}

TEST_CASE("late masks: a matcher that fails late fails its row alone") {
  Turns world;
  world.submit(request(1, "3 12 4 4"));
  world.submit(endless(2));
  world.run_until_late(1, 4);
  world.run_until_ended({2});
  world.factory.masks.open();
  world.run_until_ended({1});
  REQUIRE(std::holds_alternative<gen::Failed>(world.ends[1][0].body));
  CHECK(std::get<gen::Failed>(world.ends[1][0].body).error.code == ErrorCode::kTooLarge);
  CHECK(world.answers[1].size() == 4);
  CHECK(world.answers[2] == oracle(endless(2)));
}

TEST_CASE("late masks: an epoch may end while a row waits, and its answer goes on in the next") {
  Turns world;
  const gen::Request whole = request(1, kLate);
  world.submit(whole);
  world.run_until_late(1, 4);
  REQUIRE(world.core.reset(2));
  REQUIRE(world.ends[1].size() == 1);
  CHECK(world.core.stats().awaiting_grammars == 0);
  gen::Request rest = whole;
  rest.emitted = world.answers[1];
  rest.grammar->source = "3 12";
  world.ends.clear();
  world.submit(rest);
  world.factory.masks.open();
  world.run_until_ended({1});
  CHECK(world.finished(1));
  CHECK(world.answers[1] == oracle(whole));
}

TEST_CASE("late masks: time passes for a row that waits, with nothing else to do") {
  for (const bool prepared : {false, true}) {
    World world({}, prepared);
    Reader reader;
    gen::Request late = request(1, kLate);
    late.deadline = 20ms;
    REQUIRE(world.engine->submit(late, reader.sink()));
    const gen::Event last = reader.wait();
    REQUIRE(std::holds_alternative<gen::Failed>(last.body));
    CHECK(std::get<gen::Failed>(last.body).error.code == ErrorCode::kDeadline);
  }
}

TEST_CASE("late masks: an engine may end while a row waits for one") {
  World world;
  Reader late, plain;
  std::promise<void> waits;
  size_t tokens = 0;
  REQUIRE(world.engine->submit(request(1, kLate), [&, sink = late.sink()](gen::Event event) {
    if (std::holds_alternative<gen::Tokens>(event.body) && ++tokens == 4) waits.set_value();
    sink(std::move(event));
  }));
  waits.get_future().wait();
  REQUIRE(world.engine->submit(endless(2), plain.sink()));
  CHECK(std::holds_alternative<gen::Finished>(plain.wait().body));
  std::thread ends([&] { world.engine.reset(); });
  CHECK(std::holds_alternative<gen::Failed>(late.wait().body));
  world.factory.masks.open();
  ends.join();
}

}  // namespace
}  // namespace tandem::engine::constraints
