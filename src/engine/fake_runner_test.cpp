#include "engine/fake_runner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "base/clock.h"

using namespace tandem;
using namespace tandem::engine;
using plan::NumericClass;
using plan::Row;
using plan::StepPlan;

namespace {

std::vector<float> run(FakeRunner& runner, const StepPlan& plan) {
  REQUIRE(runner.issue(plan));
  const auto result = runner.complete();
  REQUIRE(result);
  CHECK(result->sequence == plan.sequence);
  return {result->logits.begin(), result->logits.end()};
}

const std::vector<plan::TokenId> kHistory{5, 9, 200, 7, 7, 31, 4, 90, 11};

StepPlan first_chunk() {
  return {.rows = {{.request = 1, .tokens = {5, 9, 200, 7, 7, 31}, .pages = {3, 1}}}};
}

StepPlan second_chunk() {
  return {.sequence = 1,
          .rows = {{.request = 1,
                    .start = 6,
                    .tokens = {4, 90, 11},
                    .pages = {3, 1, 2},
                    .wants_logits = true}}};
}

}  // namespace

TEST_CASE("fake runner: logits are the oracle's, whatever the chunks and pages") {
  FakeRunner runner({.page_tokens = 4, .pages = 8});
  CHECK(run(runner, first_chunk()).empty());
  CHECK(run(runner, second_chunk()) == fake_logits(kHistory));
}

TEST_CASE("fake runner: a wrong page, a corrupt slot or a missing chunk change the logits") {
  FakeRunner wrong_page({.page_tokens = 4, .pages = 8});
  run(wrong_page, first_chunk());
  StepPlan plan = second_chunk();
  std::swap(plan.rows[0].pages[0], plan.rows[0].pages[1]);
  CHECK(run(wrong_page, plan) != fake_logits(kHistory));

  FakeRunner corrupt({.page_tokens = 4, .pages = 8});
  run(corrupt, first_chunk());
  corrupt.corrupt(3, 2, 201);
  CHECK(run(corrupt, second_chunk()) != fake_logits(kHistory));

  FakeRunner missing({.page_tokens = 4, .pages = 8});
  plan = second_chunk();
  plan.sequence = 0;
  CHECK(run(missing, plan) != fake_logits(kHistory));
}

TEST_CASE("fake runner: a copied page reads as the page did before later writes") {
  FakeRunner runner({.page_tokens = 4, .pages = 8});
  run(runner, first_chunk());
  const StepPlan branch{
      .sequence = 1,
      .copies = {{.from = 1, .to = 6}},
      .rows = {{.request = 2, .start = 6, .tokens = {99}, .pages = {3, 6}, .wants_logits = true}}};
  CHECK(run(runner, branch) == fake_logits(std::vector<plan::TokenId>{5, 9, 200, 7, 7, 31, 99}));
  StepPlan original = second_chunk();
  original.sequence = 2;
  CHECK(run(runner, original) == fake_logits(kHistory));
}

TEST_CASE("fake runner: a wrong window page or state changes the logits") {
  const FakeOptions options{.page_tokens = 4,
                            .pages = 8,
                            .window = 5,
                            .window_pages = 6,
                            .state_slots = 4,
                            .state_step = 4};
  const auto logits = [&](std::vector<plan::PageId> window_pages, plan::SlotId state) {
    FakeRunner runner(options);
    StepPlan first = first_chunk();
    first.rows[0].window_pages = {5, 4};
    const auto count = static_cast<uint32_t>(first.rows[0].tokens.size());
    first.rows[0].saves = {{.tokens = count - 1, .slot = 1}, {.tokens = count, .slot = 2}};
    run(runner, first);
    StepPlan second = second_chunk();
    second.rows[0].window_pages = std::move(window_pages);
    second.rows[0].state = state;
    second.rows[0].saves = {
        {.tokens = static_cast<uint32_t>(second.rows[0].tokens.size()), .slot = 2}};
    return run(runner, second);
  };
  CHECK(logits({5, 4, 0}, 2) == fake_logits(kHistory));
  CHECK(logits({5, 3, 0}, 2) != fake_logits(kHistory));
  CHECK(logits({5, 4, 0}, 1) != fake_logits(kHistory));
  CHECK(logits({5, 4, 0}, 3) != fake_logits(kHistory));
}

TEST_CASE("fake runner: numeric classes change the logits only when they matter") {
  for (const bool matter : {false, true}) {
    FakeRunner runner({.page_tokens = 4, .pages = 8, .classes_matter = matter});
    run(runner, first_chunk());
    StepPlan plan = second_chunk();
    plan.rows[0].numeric_class = NumericClass::kStep;
    std::vector<FakePosition> history;
    for (size_t i = 0; i < kHistory.size(); ++i) {
      history.push_back({kHistory[i], i < 6 ? NumericClass::kChunk : NumericClass::kStep});
    }
    const auto logits = run(runner, plan);
    CHECK((logits == fake_logits(kHistory)) == !matter);
    if (matter) CHECK(logits == fake_logits(history));
  }
}

TEST_CASE("fake runner: equal plans give equal state hashes, unequal ones do not") {
  const FakeOptions options{.page_tokens = 4, .pages = 8};
  FakeRunner a(options), b(options), c(options);
  const auto hash = [](FakeRunner& runner, const StepPlan& plan) {
    REQUIRE(runner.issue(plan));
    return runner.complete()->state_hash;
  };
  StepPlan other = first_chunk();
  other.rows[0].tokens[0] = 6;
  CHECK(hash(a, first_chunk()) == hash(b, first_chunk()));
  CHECK(hash(c, other) != hash(b, second_chunk()));
  const uint64_t before = hash(a, second_chunk());
  REQUIRE(a.reset(0));
  CHECK(hash(a, first_chunk()) != before);
}

TEST_CASE("fake runner: plans that do not fit are refused by kind") {
  FakeRunner runner({.max_context = 12, .page_tokens = 4, .pages = 8});
  const auto refused = [&](StepPlan plan) {
    const Status status = runner.issue(plan);
    return !status && status.error().code == ErrorCode::kInvalid;
  };
  StepPlan plan = first_chunk();
  CHECK(refused({}));
  plan.epoch = 3;
  CHECK(refused(plan));
  plan = first_chunk(), plan.sequence = 1;
  CHECK(refused(plan));
  plan = first_chunk(), plan.rows[0].pages = {3};
  CHECK(refused(plan));
  plan = first_chunk(), plan.rows[0].pages = {3, 8};
  CHECK(refused(plan));
  plan = first_chunk(), plan.rows[0].tokens[1] = 256;
  CHECK(refused(plan));
  plan = first_chunk(), plan.rows[0].start = 7, plan.rows[0].pages = {0, 1, 2, 3};
  CHECK(refused(plan));
  plan = first_chunk(), plan.rows.push_back(plan.rows[0]);
  CHECK(refused(plan));
  plan = first_chunk(), plan.rows.insert(plan.rows.begin(), plan.rows[0]);
  plan.rows[0].request = 2, plan.rows[0].numeric_class = NumericClass::kStep;
  CHECK(refused(plan));
  CHECK(runner.issue(first_chunk()));
  CHECK(refused(second_chunk()));  // depth 1
}

TEST_CASE("fake runner: abort ends a blocked complete, and reset makes it whole again") {
  FakeRunner runner({.step_delay = std::chrono::minutes(1)});
  REQUIRE(runner.issue({.rows = {{.request = 1, .tokens = {1}, .pages = {0}}}}));
  std::thread other([&] { runner.abort(); });
  const auto result = runner.complete();
  other.join();
  REQUIRE(!result);
  CHECK(result.error().code == ErrorCode::kPeerLost);
  CHECK(!runner.issue({.sequence = 1, .rows = {{.request = 1, .tokens = {1}, .pages = {0}}}}));
  REQUIRE(runner.reset(4));
  CHECK(runner.issue({.epoch = 4, .rows = {{.request = 1, .tokens = {1}, .pages = {0}}}}));
}

TEST_CASE("fake runner: delays go to the hook that keeps virtual time") {
  ManualClock clock;
  FakeRunner runner({.step_delay = std::chrono::milliseconds(3),
                     .token_delay = std::chrono::milliseconds(2),
                     .pass_time = [&](Duration by) { clock.advance(by); }});
  run(runner, {.rows = {{.request = 1, .tokens = {1, 2}, .pages = {0}}}});
  CHECK(clock.now() == TimePoint{} + std::chrono::milliseconds(7));
}

TEST_CASE("fake runner: it draws as the host would, and a row goes on with what was drawn") {
  FakeRunner runner({.page_tokens = 4, .pages = 8, .depth = 2, .draws = true});
  const plan::Draw draw{.temperature = 0.7F, .top_k = 30, .seed = 11};
  StepPlan first{.rows = {{.request = 1, .tokens = {5, 9, 200}, .pages = {3, 1}, .draw = draw}}};
  StepPlan next = first;
  next.sequence = 1;
  next.rows[0].start = 3;
  next.rows[0].tokens = {plan::kDrawn};
  next.rows[0].numeric_class = NumericClass::kStep;
  REQUIRE(runner.issue(first));
  REQUIRE(runner.issue(next));
  std::vector<plan::TokenId> history{5, 9, 200};
  sample::Sampler sampler;
  for (int step = 0; step < 2; ++step) {
    const auto result = runner.complete();
    REQUIRE(result);
    REQUIRE(result->drawn.size() == 1);
    const auto logits = fake_logits(history);
    const auto expected =
        sampler.draw({.logits = logits,
                      .history = history,
                      .sampling = {.temperature = 0.7F, .top_k = 30, .seed = 11}});
    CHECK(result->drawn[0] == expected->id);
    history.push_back(expected->id);
  }
}

TEST_CASE("fake runner: draws that do not fit are refused") {
  const StepPlan draws{.rows = {{.request = 1, .tokens = {1}, .pages = {0}, .draw = plan::Draw{}}}};
  CHECK_FALSE(FakeRunner({}).issue(draws));
  FakeRunner runner({.depth = 2, .draws = true});
  StepPlan plan = draws;
  plan.rows[0].wants_logits = true;
  CHECK_FALSE(runner.issue(plan));
  plan = draws, plan.rows[0].tokens = {plan::kDrawn};
  CHECK_FALSE(runner.issue(plan));  // nothing was drawn before
  CHECK(runner.issue(draws));
}

TEST_CASE("fake runner: a row goes on only with what the step issued before it drew") {
  FakeRunner runner({.depth = 3, .draws = true});
  const plan::Row first{.request = 1, .tokens = {1}, .pages = {0}, .draw = plan::Draw{}};
  plan::Row on = first;
  on.start = 1, on.tokens = {plan::kDrawn}, on.numeric_class = NumericClass::kStep;
  REQUIRE(runner.issue({.rows = {first}}));
  REQUIRE(runner.issue({.sequence = 1, .rows = {{.request = 2, .tokens = {1}, .pages = {1}}}}));
  CHECK_FALSE(runner.issue({.sequence = 2, .rows = {on}}));
}

TEST_CASE("fake runner: the state hash tells where a token was drawn otherwise") {
  const FakeOptions options{.page_tokens = 4, .pages = 8, .depth = 2, .draws = true};
  FakeRunner whole(options), broken(options);
  const auto step = [](FakeRunner& runner, uint64_t sequence) {
    StepPlan plan{.sequence = sequence,
                  .rows = {{.request = 1,
                            .start = static_cast<uint32_t>(sequence),
                            .tokens = {sequence == 0 ? 7 : plan::kDrawn},
                            .pages = {3},
                            .draw = plan::Draw{}}}};
    REQUIRE(runner.issue(plan));
    return runner.complete()->state_hash;
  };
  CHECK(step(whole, 0) == step(broken, 0));
  broken.corrupt(3, 0, 8);
  CHECK(step(whole, 1) == step(broken, 1));  // the same row ran, but draws another token
  CHECK(step(whole, 2) != step(broken, 2));
}
