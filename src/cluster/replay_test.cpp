#include "cluster/replay.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "cluster/ranks_test.h"
#include "cluster/recording_runner.h"

namespace tandem::cluster {
namespace {

using namespace testing;

std::filesystem::path log_path() {
  return std::filesystem::temp_directory_path() /
         ("tandem-replay-" + std::to_string(::getpid()) + ".plans");
}

/// Two epochs of a group of three, recorded on rank 0; returns the last state hash.
uint64_t record_two_epochs() {
  Group group(3);
  LockstepRunner lockstep(*group.fakes[0], *group.links, {});
  RecordingRunner runner(lockstep, *plan::PlanLogWriter::create(log_path(), "fake"));
  uint64_t last = 0;
  for (uint32_t epoch = 1; epoch <= 2; ++epoch) {
    lockstep.abort();  // the epoch before is over: its secret opens nothing more
    const auto followers = group.follow(epoch);
    lockstep.prepare(group.form(0, epoch));
    REQUIRE(runner.reset(epoch));
    REQUIRE(run_steps(runner, 0, 50, epoch));
    REQUIRE(runner.issue(decode_plan_at(epoch, 50)));
    const auto result = runner.complete();
    REQUIRE(result);
    last = result->state_hash;
  }
  CHECK(runner.steps() == 102);
  return last;
}

TEST_CASE("replay: a recorded group's plans give the same state hash on a lone rank") {
  const uint64_t recorded = record_two_epochs();
  const auto log = plan::read_plan_log(log_path());
  std::filesystem::remove(log_path());
  REQUIRE(log);
  CHECK(log->records.size() == 102);
  engine::FakeRunner lone({});
  const auto replayed = replay(*log, lone);
  REQUIRE(replayed);
  CHECK(*replayed == recorded);
}

TEST_CASE("replay: a log that tells of another execution is found out at its sequence") {
  record_two_epochs();
  auto log = plan::read_plan_log(log_path());
  std::filesystem::remove(log_path());
  REQUIRE(log);
  log->records[17].plan.rows[0].tokens[0] ^= 1;
  engine::FakeRunner lone({});
  const auto replayed = replay(*log, lone);
  REQUIRE_FALSE(replayed);
  CHECK(replayed.error().code == ErrorCode::kCorrupt);
  CHECK(replayed.error().message.find("epoch 1, sequence 17: ") == 0);
}

TEST_CASE("recording runner: predicts a step by its tokens at the slowest speed of late") {
  using namespace std::chrono_literals;
  engine::FakeRunner fake({.step_delay = 2ms});
  RecordingRunner runner(fake, std::nullopt);
  REQUIRE(runner.reset(1));
  REQUIRE(runner.issue(decode_plan_at(1, 0)));
  CHECK(runner.predicted_step() == 0ns);
  REQUIRE(runner.complete());
  CHECK(runner.predicted_step() == 0ns);
  plan::StepPlan chunk = decode_plan_at(1, 1);
  chunk.rows[0].tokens.assign(10, 3);
  REQUIRE(runner.issue(chunk));
  CHECK(runner.predicted_step() >= 20ms);
  REQUIRE(runner.complete());
  CHECK(runner.steps() == 2);
}

TEST_CASE("replay: steps that were recorded while two were in flight replay one by one") {
  const engine::FakeOptions options{.depth = 2, .draws = true};
  {
    engine::FakeRunner fake(options);
    RecordingRunner runner(fake, *plan::PlanLogWriter::create(log_path(), "fake"));
    REQUIRE(runner.reset(1));
    for (uint64_t sequence = 0; sequence < 20; ++sequence) {
      plan::StepPlan plan = decode_plan_at(1, sequence);
      plan.rows[0].wants_logits = false;
      plan.rows[0].draw = plan::Draw{};
      if (sequence > 0) plan.rows[0].tokens = {plan::kDrawn};
      REQUIRE(runner.issue(plan));
      if (sequence > 0) REQUIRE(runner.complete());
    }
    REQUIRE(runner.complete());
  }
  const auto log = plan::read_plan_log(log_path());
  std::filesystem::remove(log_path());
  REQUIRE(log);
  CHECK(log->records.size() == 20);
  engine::FakeRunner lone(options);
  CHECK(replay(*log, lone));
}

}  // namespace
}  // namespace tandem::cluster
