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

}  // namespace
}  // namespace tandem::engine
