// Answers that reuse choices of key blocks: what a resume, another split or another path makes of
// them.
#include "base/clock.h"
#include "engine/core.h"
#include "runner/ranks_test.h"

namespace tandem::runner {
namespace {

const model::RandomOptions kChoosing{
    .model_type = "minimax_m3_vl_text", .layers = 3, .heads = 8, .kv_heads = 4, .bits = 4};
constexpr uint32_t kPrompt = 43, kAnswer = 45;

/// The answer of a model alone, of which `emitted` was said before.
Tokens reusing_answer(ModelOptions options, uint32_t index_reuse, const Tokens& emitted = {}) {
  options.page_tokens = 4;
  options.pages = 96;
  auto runner = ModelRunner::load(std::make_shared<model::RandomCheckpoint>(kChoosing), options);
  REQUIRE(runner.has_value());
  ManualClock clock;
  engine::Core core(**runner, clock, {.schedule = {.step_tokens = 24}});
  REQUIRE(core.reset(1).has_value());
  Tokens out = emitted;
  core.submit({.id = 1,
               .prompt = random_tokens(kPrompt, kChoosing.vocab, 3),
               .emitted = emitted,
               .max_tokens = kAnswer,
               .index_reuse = index_reuse},
              [&](const gen::Event& event) {
                CHECK_FALSE(std::holds_alternative<gen::Failed>(event.body));
                if (const auto* some = std::get_if<gen::Tokens>(&event.body))
                  for (const gen::Token& token : some->tokens) out.push_back(token.id);
              });
  while (!core.empty()) core.step();
  return out;
}

TEST_CASE("index reuse: an answer that is resumed anywhere goes on as it would have") {
  for (const uint32_t most_age : {2U, 5U, gen::kMostIndexReuse}) {
    const Tokens whole = reusing_answer({}, most_age);
    CHECK(whole.size() == kAnswer);
    CHECK(whole != reusing_answer({}, 0));
    for (const ptrdiff_t cut : {1, 4, 5, 6, 13, 30, 44})
      CHECK(reusing_answer({}, most_age, Tokens(whole.begin(), whole.begin() + cut)) == whole);
  }
}

TEST_CASE("index reuse: a device that runs ahead answers as one that does not") {
  const ModelOptions ahead{.path = tensor::Path::kPlain, .device = tensor::mx::Device::cpu};
  ModelOptions known = ahead;
  known.overlap = false;
  const Tokens whole = reusing_answer(ahead, 5);
  CHECK(reusing_answer(known, 5) == whole);
  CHECK(reusing_answer(ahead, 5, Tokens(whole.begin(), whole.begin() + 20)) == whole);
}

/// A prompt and its answer: a chunk, then token by token, or, as a resume has it, in two rows.
std::vector<plan::StepPlan> reusing_plans(bool resumes) {
  Pages pool(64, 4, 7);
  History history{.id = 1, .tokens = random_tokens(kPrompt + kAnswer, kChoosing.vocab, 5)};
  std::vector<plan::StepPlan> out;
  while (history.done < history.tokens.size()) {
    const size_t count = history.done == 0 ? kPrompt : !resumes ? 1 : kAnswer / 2;
    plan::StepPlan plan{.sequence = out.size()};
    plan.rows.push_back(history.next(count, pool, true));
    if (plan.rows[0].start > 0) {
      plan.rows[0].numeric_class = plan::NumericClass::kStep;
      plan.rows[0].reuse = plan::IndexReuse{.most_age = 5, .from = kPrompt};
    }
    out.push_back(std::move(plan));
  }
  return out;
}

TEST_CASE("index reuse: split over ranks, in one row or many and on both paths it is the same") {
  const RanksSetup alone{.model = kChoosing};
  const auto expected = run_ranks(alone, reusing_plans(false));
  REQUIRE(expected.errors.empty());
  std::vector<RanksSetup> setups(5, alone);
  setups[1].ranks = 2;
  setups[2].ranks = 3;
  setups[3].ranks = 2;
  setups[3].split = topology::Split::kPipeline;
  setups[4].path = tensor::Path::kPlain;
  for (const RanksSetup& setup : setups)
    for (const bool resumes : {false, true}) {
      CAPTURE(setup.ranks);
      const auto found = run_ranks(setup, reusing_plans(resumes));
      REQUIRE(found.errors.empty());
      CHECK(largest_difference(found.logits.back(), expected.logits.back()) <= 5e-4F);
      if (resumes) continue;
      REQUIRE(found.logits.size() == expected.logits.size());
      for (size_t i = 0; i < found.logits.size(); ++i)
        CHECK(largest_difference(found.logits[i], expected.logits[i]) <= 5e-4F);
    }
}

TEST_CASE(
    "index reuse: rows that may not, or of a model that does not choose blocks, are refused") {
  std::vector<plan::StepPlan> plans = reusing_plans(false);
  const auto refusal = [&](const model::RandomOptions& model) {
    const auto out = run_ranks({.model = model}, {plans[0], plans[1]});
    return out.errors.empty() ? std::string() : out.errors[0].message;
  };
  CHECK(refusal(kChoosing).empty());
  CHECK(refusal({}) == "plan: no layer of this model chooses blocks of keys");
  plans[1].rows[0].reuse->from = kPrompt + 1;
  CHECK(refusal(kChoosing).starts_with("plan: request 1 takes choices"));
  plans[1].rows[0].reuse = plan::IndexReuse{.most_age = 49, .from = kPrompt};
  CHECK(refusal(kChoosing).starts_with("plan: request 1 takes choices"));
}

}  // namespace
}  // namespace tandem::runner
