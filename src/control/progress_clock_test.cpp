#include "control/progress_clock.h"

#include <doctest/doctest.h>

namespace tandem::control {
namespace {

using namespace std::chrono_literals;

const TimePoint kBegin{};

TEST_CASE("progress clock: steps keep it quiet, five seconds without one do not") {
  ProgressClock clock({});
  clock.begin_epoch(kBegin, false);
  clock.beat(0, 1, 0s, kBegin);
  clock.beat(0, 2, 0s, kBegin + 4s);
  CHECK(!clock.is_stalled(kBegin + 9s));
  clock.beat(0, 2, 0s, kBegin + 9s);  // a beat without a step is no progress
  CHECK(clock.is_stalled(kBegin + 9s + 1ms));
}

TEST_CASE("progress clock: a step that is known to be long gets ten times its length") {
  ProgressClock clock({});
  clock.begin_epoch(kBegin, false);
  clock.beat(1, 1, 2s, kBegin);
  CHECK(!clock.is_stalled(kBegin + 20s));
  CHECK(clock.is_stalled(kBegin + 20s + 1ms));
}

TEST_CASE("progress clock: the first step after loading gets longer") {
  ProgressClock clock({});
  clock.begin_epoch(kBegin, true);
  CHECK(!clock.is_stalled(kBegin + 60s));
  CHECK(clock.is_stalled(kBegin + 61s));
  clock.beat(0, 0, 0s, kBegin);
  clock.report(kBegin + 50s);  // the request began
  CHECK(!clock.is_stalled(kBegin + 110s));
  clock.beat(0, 1, 0s, kBegin + 70s);  // and its first step is over
  CHECK(!clock.is_stalled(kBegin + 75s));
  CHECK(clock.is_stalled(kBegin + 76s));
}

TEST_CASE("progress clock: steps that report nothing are a stall too, after a minute") {
  ProgressClock clock({});
  clock.begin_epoch(kBegin, false);
  for (int i = 1; i <= 60; ++i) clock.beat(0, static_cast<uint64_t>(i), 0s, kBegin + i * 1s);
  CHECK(!clock.is_stalled(kBegin + 60s));
  clock.beat(0, 61, 0s, kBegin + 61s);
  CHECK(clock.is_stalled(kBegin + 61s));
}

TEST_CASE("progress clock: idle time counts for nothing") {
  ProgressClock clock({});
  clock.begin_epoch(kBegin, false);
  clock.idle(kBegin + 1000s);
  CHECK(!clock.is_stalled(kBegin + 1005s));
  CHECK(clock.is_stalled(kBegin + 1006s));
}

}  // namespace
}  // namespace tandem::control
