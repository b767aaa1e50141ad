#include <doctest/doctest.h>

#include "base/log.h"
#include "control/instance.h"

namespace tandem::control {
namespace {

using namespace std::chrono_literals;

/// An instance of one rank whose process and engine the test plays.
class Played {
 public:
  Played() : before_(log_level()) {
    set_log_level(LogLevel::kError);
    instance.start();
  }
  ~Played() { set_log_level(before_); }

  /// The next process says Hello and joins its epoch.
  void join() {
    ++who_.number;
    ++epoch_;
    clock.advance(100ms);
    instance.tick();
    instance.on_hello(who_, {.pid = 7});
    say(plan::Ready{
        .epoch = epoch_, .limits = {.vocab = 9, .max_context = 99}, .pages = 8, .page_tokens = 4});
    REQUIRE(instance.state() == InstanceState::kReady);
  }
  void say(plan::Frame frame) { instance.on_frame(who_, std::move(frame)); }
  void report(decltype(gen::Event::body) body) {
    say(plan::Report{.epoch = epoch_, .events = {{.request = 1, .body = std::move(body)}}});
  }
  void figures(plan::EngineTotals totals) {
    say(plan::Figures{.memory = {.weight_bytes = 11, .cache_bytes = 12, .resident_bytes = 13},
                      .engine = plan::EngineFigures{.running = 1, .totals = std::move(totals)}});
  }
  void die() { instance.on_exit(who_, "was killed"); }
  /// A fault without a death: the epoch is dropped, and the process joins the next.
  void fault() {
    say(plan::Fault{.epoch = epoch_, .error = {ErrorCode::kPeerLost, "link"}});
    say(plan::Aborted{.epoch = epoch_});
  }
  uint64_t deaths(DeathCause cause) {
    return instance.snapshot().figures.deaths[static_cast<size_t>(cause)];
  }
  uint64_t lost(EpochEnd end) {
    return instance.snapshot().figures.lost_epochs[static_cast<size_t>(end)];
  }

  ManualClock clock;
  Instance instance{{.name = "a", .ranks = 1}, clock};

 private:
  LogLevel before_;
  Incarnation who_;
  uint32_t epoch_ = 0;
};

TEST_CASE("figures: the totals of an engine go on over its processes, and are said once each") {
  Played played;
  played.join();
  CHECK(played.instance.snapshot().page_tokens == 4);
  played.figures({.steps = 3, .answer_tokens = 10, .step_counts = {1, 2}});
  played.figures({.steps = 4, .answer_tokens = 12, .step_counts = {1, 3}});
  played.die();
  CHECK(played.instance.snapshot().figures.engine.totals.answer_tokens == 12);
  CHECK(played.instance.snapshot().ranks[0].memory == plan::Memory{});
  played.join();
  CHECK(played.instance.snapshot().figures.engine.totals.answer_tokens == 12);
  CHECK(played.instance.snapshot().figures.engine.running == 0);
  played.figures({.steps = 1, .answer_tokens = 5, .step_counts = {4, 0, 1}});
  const InstanceSnapshot seen = played.instance.snapshot();
  CHECK(seen.figures.engine.totals ==
        plan::EngineTotals{.steps = 5, .answer_tokens = 17, .step_counts = {5, 3, 1}});
  CHECK(seen.ranks[0].memory.resident_bytes == 13);
}

TEST_CASE("figures: losses are counted by their cause, and a death once") {
  Played played;
  played.join();
  played.die();
  played.instance.on_link_closed({0, 1}, {ErrorCode::kPeerLost, "closed"});
  played.join();
  CHECK(played.deaths(DeathCause::kExit) == 1);
  CHECK(played.deaths(DeathCause::kLink) == 0);
  CHECK(played.lost(EpochEnd::kRankLost) == 1);
  played.fault();
  CHECK(played.lost(EpochEnd::kFault) == 1);
  CHECK(played.deaths(DeathCause::kExit) == 1);
  for (int i = 0; i < 100; ++i) {
    played.clock.advance(100ms);
    played.instance.tick();
  }
  CHECK(played.deaths(DeathCause::kSilence) == 1);
  CHECK(played.instance.snapshot().lost_epochs ==
        played.lost(EpochEnd::kRankLost) + played.lost(EpochEnd::kFault));
}

TEST_CASE("figures: a resumed request counts once a hand-over, and its pause as one gap") {
  Played played;
  played.join();
  REQUIRE(played.instance.submit({.id = 1, .prompt = {1, 2}}));
  played.report(gen::Started{});
  played.report(gen::Tokens{{{.id = 3}}});
  played.clock.advance(20ms);
  played.report(gen::Tokens{{{.id = 4}, {.id = 5}}});
  CHECK(played.instance.snapshot().figures.resumed_requests == 0);
  played.die();
  played.clock.advance(1s);
  played.join();
  played.report(gen::Started{});
  played.report(gen::Tokens{{{.id = 6}}});
  const InstanceFigures seen = played.instance.snapshot().figures;
  CHECK(seen.resumed_requests == 1);
  CHECK(seen.blamed_requests == 0);
  CHECK(seen.token_gaps.sum() == doctest::Approx(0.02 + 1.1));
  uint64_t gaps = 0;
  for (const uint64_t count : seen.token_gaps.counts()) gaps += count;
  CHECK(gaps == 3);
}

}  // namespace
}  // namespace tandem::control
