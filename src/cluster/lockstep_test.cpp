#include "cluster/lockstep.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>

#include "cluster/ranks_test.h"

namespace tandem::cluster {
namespace {

using namespace std::chrono_literals;
using namespace testing;

/// Lets a thread of the test wait for a fault reported on another.
class FaultBox {
 public:
  LockstepOptions options(std::chrono::milliseconds deadline = 5000ms) {
    return {.deadline = deadline, .on_fault = [this](const Error& why) {
              const std::lock_guard lock(mutex_);
              faults_.push_back(why);
              changed_.notify_all();
            }};
  }
  std::vector<Error> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 10s, [this] { return !faults_.empty(); });
    return faults_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Error> faults_;
};

TEST_CASE("lockstep: 1 to 4 ranks execute the same plans as one does alone") {
  engine::FakeRunner alone({});
  REQUIRE(alone.reset(1));
  REQUIRE(run_steps(alone, 0, 199));
  REQUIRE(alone.issue(decode_plan_at(1, 199)));
  const auto expected = alone.complete();
  REQUIRE(expected);
  for (uint32_t size = 1; size <= 4; ++size) {
    CAPTURE(size);
    Group group(size);
    const auto followers = group.follow();
    LockstepRunner runner(*group.fakes[0], *group.links, {});
    runner.prepare(group.form(0));
    REQUIRE(runner.reset(1));
    REQUIRE(run_steps(runner, 0, 199));
    REQUIRE(runner.issue(decode_plan_at(1, 199)));
    const auto last = runner.complete();
    REQUIRE(last);
    CHECK(last->state_hash == expected->state_hash);
    CHECK(std::equal(last->logits.begin(), last->logits.end(), expected->logits.begin()));
  }
}

TEST_CASE("lockstep: several steps in flight complete in order") {
  Group group(3, {.depth = 3});
  const auto followers = group.follow();
  LockstepRunner runner(*group.fakes[0], *group.links, {});
  runner.prepare(group.form(0));
  REQUIRE(runner.reset(1));
  for (uint64_t s = 0; s < 2; ++s) REQUIRE(runner.issue(decode_plan_at(1, s)));
  for (uint64_t s = 0; s < 100; ++s) {
    REQUIRE(runner.issue(decode_plan_at(1, s + 2)));
    const auto result = runner.complete();
    REQUIRE(result);
    CHECK(result->sequence == s);
  }
}

TEST_CASE("lockstep: a page table tampered with on one rank is caught, with rank and sequence") {
  for (const uint64_t at : {uint64_t{0}, uint64_t{20}, uint64_t{39}}) {
    CAPTURE(at);
    Group group(3);
    TamperingRunner tampering(*group.fakes[2], [at](plan::StepPlan& plan) {
      if (plan.sequence == at) plan.rows[0].pages.back() += 7;
    });
    FollowerThread honest(*group.fakes[1], group.form(1));
    FollowerThread defective(tampering, group.form(2));
    FaultBox box;
    LockstepRunner runner(*group.fakes[0], *group.links, box.options());
    runner.prepare(group.form(0));
    REQUIRE(runner.reset(1));
    // Nothing follows the last step: its hash is compared when it comes.
    const Status ran = run_steps(runner, 0, 40);
    const auto faults = box.wait();
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].code == ErrorCode::kCorrupt);
    CHECK(faults[0].message.find(
              fmt::format("rank 2 executed something else at sequence {}:", at)) == 0);
    if (!ran) CHECK(ran.error() == faults[0]);
    CHECK(runner.issue(decode_plan_at(1, 40)).error() == faults[0]);
  }
}

TEST_CASE("lockstep: a follower that goes away is a lost peer, at once, also when idle") {
  Group group(3);
  auto followers = group.follow();
  FaultBox box;
  LockstepRunner runner(*group.fakes[0], *group.links, box.options());
  runner.prepare(group.form(0));
  REQUIRE(runner.reset(1));
  REQUIRE(run_steps(runner, 0, 10));
  const auto before = std::chrono::steady_clock::now();
  followers[1].reset();
  const auto faults = box.wait();
  CHECK(std::chrono::steady_clock::now() - before < 3s);
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].code == ErrorCode::kPeerLost);
  CHECK(faults[0].message.find("rank 2 is lost") == 0);
  CHECK(runner.issue(decode_plan_at(1, 10)).error() == faults[0]);
}

TEST_CASE("follower links: a lost follower is named alike by who sends to it") {
  Group group(3);
  auto followers = group.follow();
  std::promise<std::pair<uint32_t, std::string>> lost;
  REQUIRE(group.links->meet(
      group.form(0),
      {.on_frame = [](uint32_t, const plan::Frame&) {},
       .on_lost = [&](uint32_t rank, const Error& why) { lost.set_value({rank, why.message}); }}));
  followers[0].reset();
  CHECK(lost.get_future().get().first == 1);
  const Status sent = group.links->send(plan::encode_execute(decode_plan_at(1, 0)));
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == ErrorCode::kPeerLost);
  CHECK(sent.error().message.find("rank 1 is lost: ") == 0);
  group.links->close();  // the other one's end is no news
}

TEST_CASE("lockstep: a follower lost while a step runs ends the step") {
  // Rank 0's step takes for ever; only losing the follower can end it.
  Group group(2);
  engine::FakeRunner slow({.step_delay = 1h});
  auto followers = group.follow();
  LockstepRunner runner(slow, *group.links, {});
  runner.prepare(group.form(0));
  REQUIRE(runner.reset(1));
  REQUIRE(runner.issue(decode_plan_at(1, 0)));
  std::thread killer([&] { followers[0].reset(); });
  const auto result = runner.complete();
  killer.join();
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kPeerLost);
  CHECK(result.error().message.find("rank 1 is lost") == 0);
}

TEST_CASE("lockstep: a stopped follower is silent until the deadline, and named") {
  Group group(3);
  std::mutex mutex;
  std::condition_variable released;
  bool free = false;
  engine::FakeRunner stopped({.before_complete = [&](const plan::StepPlan& plan) -> Status {
    std::unique_lock lock(mutex);
    if (plan.sequence == 5) released.wait(lock, [&] { return free; });
    return {};
  }});
  FollowerThread honest(*group.fakes[1], group.form(1));
  FollowerThread silent(stopped, group.form(2));
  LockstepRunner runner(*group.fakes[0], *group.links,
                        {.deadline = 200ms, .slack = 1, .on_fault = {}});
  runner.prepare(group.form(0));
  REQUIRE(runner.reset(1));
  const auto before = std::chrono::steady_clock::now();
  const Status ran = run_steps(runner, 0, 20);
  CHECK(std::chrono::steady_clock::now() - before >= 200ms);
  {
    const std::lock_guard lock(mutex);
    free = true;
    released.notify_all();
  }
  REQUIRE_FALSE(ran);
  CHECK(ran.error().code == ErrorCode::kDeadline);
  CHECK(ran.error().message.find("rank 2 has not completed sequence 5") == 0);
}

TEST_CASE("lockstep: what fails on a follower is reported with its rank and sequence") {
  Group group(2);
  engine::FakeRunner failing({.before_complete = [](const plan::StepPlan& plan) -> Status {
    if (plan.sequence == 3) return Error{ErrorCode::kInternal, "out of luck"};
    return {};
  }});
  FollowerThread follower(failing, group.form(1));
  FaultBox box;
  LockstepRunner runner(*group.fakes[0], *group.links, box.options());
  runner.prepare(group.form(0));
  REQUIRE(runner.reset(1));
  (void)run_steps(runner, 0, 10);
  CHECK(box.wait().at(0).message.find("rank 1 failed at sequence 3: ") == 0);
  CHECK(follower.why().code == ErrorCode::kInternal);
}

TEST_CASE("lockstep: abort ends a step under way, and a new epoch forms with the same objects") {
  Group group(3);
  auto followers = group.follow(1);
  LockstepRunner runner(*group.fakes[0], *group.links, {});
  runner.prepare(group.form(0, 1));
  REQUIRE(runner.reset(1));
  REQUIRE(run_steps(runner, 0, 5, 1));
  runner.abort();
  CHECK(runner.issue(decode_plan_at(1, 5)).error().code == ErrorCode::kPeerLost);
  CHECK(runner.reset(2).error().code == ErrorCode::kConflict);  // nobody prepared it
  for (uint32_t epoch = 2; epoch <= 6; ++epoch) {
    CAPTURE(epoch);
    runner.abort();
    for (auto& follower : followers) follower->abort();
    followers.clear();
    followers = group.follow(epoch);
    runner.prepare(group.form(0, epoch));
    REQUIRE(runner.reset(epoch));
    REQUIRE(run_steps(runner, 0, 20, epoch));
  }
}

TEST_CASE("lockstep: an abort that comes before the reset of its epoch is not forgotten") {
  Group group(2);
  LockstepRunner runner(*group.fakes[0], *group.links, {});
  runner.prepare(group.form(0));
  runner.abort();
  CHECK(runner.reset(1).error() == Error{ErrorCode::kPeerLost, "epoch 1 was aborted"});
}

TEST_CASE("lockstep: a follower that never comes is named at the deadline") {
  Group group(3);
  FollowerThread only(*group.fakes[1], group.form(1));
  LockstepRunner runner(*group.fakes[0], *group.links, {});
  plan::Form form = group.form(0);
  form.timeout = 300ms;
  runner.prepare(form);
  const Status met = runner.reset(1);
  REQUIRE_FALSE(met);
  CHECK(met.error() ==
        Error{ErrorCode::kDeadline, "epoch 1: no plan link from rank 2 within 300 ms"});
}

TEST_CASE("lockstep: abort ends a meeting under way") {
  Group group(2);
  LockstepRunner runner(*group.fakes[0], *group.links, {});
  runner.prepare(group.form(0));
  std::atomic<bool> done{false};
  std::thread aborter([&] {
    while (!done) {
      runner.abort();
      std::this_thread::yield();
    }
  });
  const auto before = std::chrono::steady_clock::now();
  CHECK(runner.reset(1).error().code == ErrorCode::kPeerLost);
  CHECK(std::chrono::steady_clock::now() - before < 5s);
  done = true;
  aborter.join();
}

TEST_CASE("follower: another epoch's or a repeated plan is refused and reported to rank 0") {
  for (const bool wrong_epoch : {true, false}) {
    CAPTURE(wrong_epoch);
    Group group(2);
    FollowerThread follower(*group.fakes[1], group.form(1));
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<plan::Frame> frames;
    REQUIRE(group.links->meet(group.form(0), {.on_frame =
                                                  [&](uint32_t, plan::Frame frame) {
                                                    const std::lock_guard lock(mutex);
                                                    frames.push_back(std::move(frame));
                                                    changed.notify_all();
                                                  },
                                              .on_lost = {}}));
    REQUIRE(group.links->send(plan::encode_execute(decode_plan_at(1, 0))));
    const auto second = wrong_epoch ? decode_plan_at(7, 1) : decode_plan_at(1, 0);
    REQUIRE(group.links->send(plan::encode_execute(second)));
    CHECK(follower.why().code == ErrorCode::kCorrupt);
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, 10s, [&] { return frames.size() == 2; }));
    CHECK(std::holds_alternative<plan::Ack>(frames[0]));
    CHECK(std::get<plan::FollowerFault>(frames[1]).sequence == 1);
  }
}

TEST_CASE("follower: a rank of an older epoch is not let in") {
  Group group(2);
  plan::Form stale = group.form(1, 1);
  stale.secret = secret_of(2);  // even if it knew the secret
  stale.timeout = 2s;
  FollowerThread follower(*group.fakes[1], stale);
  LockstepRunner runner(*group.fakes[0], *group.links, {});
  plan::Form form = group.form(0, 2);
  form.timeout = 500ms;
  runner.prepare(form);
  CHECK(runner.reset(2).error().code == ErrorCode::kDeadline);
  CHECK(follower.why().code == ErrorCode::kPeerLost);
}

TEST_CASE("lockstep: an idle group uses no CPU") {
  Group group(4);
  const auto followers = group.follow();
  LockstepRunner runner(*group.fakes[0], *group.links, {});
  runner.prepare(group.form(0));
  REQUIRE(runner.reset(1));
  REQUIRE(run_steps(runner, 0, 5));
  const auto cpu = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           std::chrono::microseconds(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  };
  const auto before = cpu();
  std::this_thread::sleep_for(500ms);  // the time that is measured
  CHECK(cpu() - before < 10ms);
}

}  // namespace
}  // namespace tandem::cluster
