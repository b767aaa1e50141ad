#include "engine/simulation.h"

#include <doctest/doctest.h>

using namespace tandem;
using namespace tandem::engine;

namespace {

struct Totals {
  uint64_t pauses = 0;
  uint64_t faults = 0;
  uint64_t reused = 0;
  uint64_t ahead = 0;
};

Totals run_worlds(SimulationOptions options, uint64_t first, uint64_t count) {
  Totals totals;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    options.seed = seed;
    Simulation simulation(options);
    CAPTURE(seed);
    CHECK(simulation.run() == "");
    totals.pauses += simulation.pauses();
    totals.faults += simulation.faults();
    totals.reused += simulation.reused_tokens();
    totals.ahead += simulation.rows_ahead();
  }
  return totals;
}

}  // namespace

TEST_CASE("simulation: whatever arrives, ends or waits, every answer is its solo answer") {
  const Totals totals = run_worlds({}, 0, 120);
  CHECK(totals.pauses > 100);
  CHECK(totals.reused > 10000);
}

TEST_CASE("simulation: answers survive rank deaths") {
  const Totals totals = run_worlds({.faults = true}, 1000, 80);
  CHECK(totals.faults > 100);
}

TEST_CASE("simulation: with strict classes every position is computed as a cold run would") {
  const Totals totals = run_worlds({.faults = true, .strict_classes = true}, 2000, 80);
  CHECK(totals.pauses > 50);
  CHECK(totals.reused > 2000);
}

TEST_CASE("simulation: answers are the same when steps are issued before their tokens are known") {
  const Totals totals = run_worlds({.draws = true}, 3000, 120);
  CHECK(totals.ahead > 10000);
  CHECK(totals.pauses > 100);
  CHECK(totals.reused > 10000);
}

TEST_CASE("simulation: steps that ran ahead survive rank deaths, in strict classes too") {
  for (const bool is_strict : {false, true}) {
    const Totals totals =
        run_worlds({.faults = true, .strict_classes = is_strict, .draws = true}, 4000, 80);
    CHECK(totals.faults > 100);
    CHECK(totals.ahead > 5000);
  }
}

TEST_CASE("simulation: layers that see a window find what they see, whoever computed it") {
  const Totals totals = run_worlds({.windows = true}, 5000, 120);
  CHECK(totals.pauses > 100);
  CHECK(totals.reused > 10000);
}

TEST_CASE("simulation: recurrent layers begin with the state of exactly what came before") {
  const Totals totals = run_worlds({.states = true}, 6000, 120);
  CHECK(totals.pauses > 100);
  CHECK(totals.reused > 10000);
}

TEST_CASE(
    "simulation: all kinds of layers in one model, rank deaths, classes, steps that ran ahead") {
  for (const bool is_strict : {false, true})
    for (const bool draws : {false, true}) {
      const Totals totals = run_worlds({.faults = true,
                                        .strict_classes = is_strict,
                                        .windows = true,
                                        .states = true,
                                        .draws = draws},
                                       7000, 80);
      CHECK(totals.faults > 100);
      CHECK(totals.reused > 1000);
    }
}

TEST_CASE("simulation: answers that reuse choices read positions of their own making alone") {
  for (const bool draws : {false, true}) {
    const Totals totals = run_worlds({.faults = true, .draws = draws, .reuses = true}, 8000, 80);
    CHECK(totals.faults > 100);
    CHECK(totals.pauses > 50);
    CHECK(totals.reused > 5000);
  }
}

TEST_CASE("simulation: embeddings are of all their positions, and leave the pages of none") {
  for (const bool draws : {false, true}) {
    const Totals totals = run_worlds({.faults = true,
                                      .windows = !draws,
                                      .states = draws,
                                      .draws = draws,
                                      .reuses = true,
                                      .pools = true},
                                     9000, 120);
    CHECK(totals.faults > 100);
    CHECK(totals.pauses > 50);
    CHECK(totals.reused > 1000);
  }
}
