#include "engine/check_plan.h"

#include <doctest/doctest.h>

#include <functional>

namespace tandem::engine {
namespace {

using Change = std::function<void(plan::StepPlan&)>;

constexpr RunnerInfo kSizes{
    .vocab = 100, .max_context = 12, .page_tokens = 4, .pages = 8, .depth = 2, .draws = true};
constexpr PlanTurn kTurn{.epoch = 2, .sequence = 5, .in_flight = 1};

/// The step before drew for request 1 alone.
Status check(const plan::StepPlan& plan,
             const RunnerInfo& info = kSizes,
             const PlanTurn& turn = kTurn) {
  return check_plan(plan, info, turn, [](plan::RequestId id) { return id == 1; });
}

/// A chunk of request 3, then a token of request 1.
plan::StepPlan fitting(const Change& change = {}) {
  plan::StepPlan plan{
      .epoch = 2,
      .sequence = 5,
      .copies = {{.from = 0, .to = 7}},
      .rows = {{.request = 3, .tokens = {4, 99}, .pages = {7}, .wants_logits = true},
               {.request = 1,
                .numeric_class = plan::NumericClass::kStep,
                .start = 11,
                .tokens = {plan::kDrawn},
                .pages = {1, 2, 3},
                .draw = plan::Draw{}}}};
  if (change) change(plan);
  return plan;
}

TEST_CASE("check plan: what fits is taken, also copies alone") {
  CHECK(check(fitting()));
  CHECK(check(fitting([](auto& p) { p.copies.clear(); })));
  CHECK(check(fitting([](auto& p) { p.rows.clear(); })));
}

TEST_CASE("check plan: each misfit is refused") {
  const std::vector<Change> changes = {
      [](auto& p) { p.epoch = 3; },
      [](auto& p) { p.sequence = 4; },
      [](auto& p) { p.rows.clear(), p.copies.clear(); },
      [](auto& p) { p.copies[0].from = 8; },
      [](auto& p) { p.copies[0].to = 8; },
      [](auto& p) { p.copies[0].to = 0; },
      [](auto& p) { std::swap(p.rows[0], p.rows[1]); },
      [](auto& p) { p.rows[0].request = 1; },
      [](auto& p) { p.rows[0].tokens.clear(); },
      [](auto& p) { p.rows[0].tokens[1] = 100; },
      [](auto& p) { p.rows[0].tokens[1] = plan::kDrawn; },
      [](auto& p) { p.rows[0].tokens = {plan::kDrawn}; },  // nothing drew it
      [](auto& p) { p.rows[0].pages = {8}; },
      [](auto& p) { p.rows[0].start = 3; },
      [](auto& p) { p.rows[0].start = UINT32_MAX; },
      [](auto& p) { p.rows[1].start = 12, p.rows[1].pages.push_back(4); },  // beyond the context
      [](auto& p) { p.rows[1].tokens.push_back(5), p.rows[1].start = 10; },
      [](auto& p) { p.rows[1].wants_logits = true; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    const Status status = check(fitting(changes[i]));
    REQUIRE(!status);
    CHECK(status.error().code == ErrorCode::kInvalid);
    CHECK(status.error().message.starts_with("plan: "));
  }
}

TEST_CASE("check plan: a runner that is full or does not draw refuses what others take") {
  CHECK(!check(fitting(), kSizes, {.epoch = 2, .sequence = 5, .in_flight = 2}));
  RunnerInfo host = kSizes;
  host.draws = false;
  CHECK(!check(fitting(), host));
}

/// A model with windows of 3 positions and recurrent layers.
constexpr RunnerInfo kAllKinds{.vocab = 100,
                               .max_context = 12,
                               .page_tokens = 4,
                               .pages = 8,
                               .window = 3,
                               .window_pages = 4,
                               .state_slots = 3,
                               .state_step = 4,
                               .depth = 2,
                               .draws = true};

plan::StepPlan of_all_kinds(const Change& change = {}) {
  plan::StepPlan plan = fitting();
  plan.window_copies = {{.from = 3, .to = 0}};
  plan.rows[0].window_pages = {0};
  plan.rows[0].saves = {{.tokens = 1, .slot = 1}, {.tokens = 2, .slot = 0}};
  plan.rows[1].window_start = 8;
  plan.rows[1].window_pages = {2};
  plan.rows[1].state = 2;
  plan.rows[1].saves = {{.tokens = 1, .slot = 1}, {.tokens = 1, .slot = 2}};
  if (change) change(plan);
  return plan;
}

TEST_CASE("check plan: window pages and states that do not fit are refused") {
  CHECK(check(of_all_kinds(), kAllKinds));
  const std::vector<Change> changes = {
      [](auto& p) { p.window_copies[0].from = 4; },
      [](auto& p) { p.window_copies[0].to = 3; },
      [](auto& p) { p.rows[0].window_pages = {4}; },
      [](auto& p) { p.rows[0].window_pages.clear(); },
      [](auto& p) { p.rows[1].window_start = 9; },
      [](auto& p) { p.rows[1].window_start = 4; },  // then its end is not covered
      [](auto& p) { p.rows[1].start = 9; },         // and sees position 7
      [](auto& p) { p.rows[0].state = 1; },         // nothing came before
      [](auto& p) { p.rows[1].state.reset(); },
      [](auto& p) { p.rows[1].state = 3; },
      [](auto& p) { p.rows[0].saves.clear(); },
      [](auto& p) { p.rows[0].saves.pop_back(); },
      [](auto& p) { p.rows[0].saves[0].tokens = 0; },
      [](auto& p) { p.rows[0].saves[0].tokens = 3; },
      [](auto& p) { p.rows[0].saves[1].slot = 3; },
      [](auto& p) { std::swap(p.rows[0].saves[0], p.rows[0].saves[1]); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    const Status status = check(of_all_kinds(changes[i]), kAllKinds);
    REQUIRE(!status);
    CHECK(status.error().message.starts_with("plan: "));
  }
}

TEST_CASE("check plan: a model without such layers takes no window pages and no states") {
  CHECK(!check(fitting([](auto& p) { p.rows[0].window_pages = {0}; })));
  CHECK(!check(fitting([](auto& p) { p.rows[0].saves = {{.tokens = 2, .slot = 0}}; })));
}

}  // namespace
}  // namespace tandem::engine
