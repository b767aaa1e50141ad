// Promise 1 through the engine: answers do not depend on what was computed before, whatever kinds
// of layers a model has.
#include <doctest/doctest.h>

#include "base/clock.h"
#include "engine/core.h"
#include "model/random_checkpoint_test.h"
#include "runner/model_runner.h"
#include "runner/plans_test.h"

namespace tandem::runner {
namespace {

constexpr uint32_t kReusePage = 4, kReuseStep = 16;  // tokens between states that are kept

/// A model behind an engine, one request at a time.
class Served {
 public:
  Served(const model::RandomOptions& o, bool reuses) : runner_(load(o)) {
    core_ = std::make_unique<engine::Core>(
        *runner_, clock_,
        engine::EngineOptions{.schedule = {.step_tokens = 24, .prefix_reuse = reuses}});
    TANDEM_CHECK(core_->reset(1).has_value(), "reset failed");
  }

  Tokens answer(const Tokens& prompt, uint32_t tokens = 12) {
    Tokens out;
    const uint64_t before = computed();
    core_->submit({.id = ++last_id_, .prompt = prompt, .max_tokens = tokens, .ignore_eos = true},
                  [&](const gen::Event& event) {
                    if (const auto* some = std::get_if<gen::Tokens>(&event.body))
                      for (const gen::Token& token : some->tokens) out.push_back(token.id);
                  });
    while (!core_->empty()) core_->step();
    computed_last_ = computed() - before;
    return out;
  }

  /// Positions that the last answer computed, its own among them.
  uint64_t computed_last() const { return computed_last_; }
  engine::RunnerInfo info() const { return runner_->info(); }

 private:
  static std::unique_ptr<ModelRunner> load(const model::RandomOptions& o) {
    auto runner = ModelRunner::load(std::make_shared<model::RandomCheckpoint>(o),
                                    {.page_tokens = kReusePage,
                                     .pages = 400,
                                     .window_pages = o.window != 0 ? 80U : 0U,
                                     .state_slots = o.has_states() ? 40U : 0U,
                                     .state_step = o.has_states() ? kReuseStep : 0U,
                                     .max_step_tokens = 24,
                                     .frees_windows = o.window != 0,
                                     .overlap = false});
    TANDEM_CHECK(runner.has_value(), "{}", runner.error().message);
    return std::move(runner).value();
  }

  uint64_t computed() const { return core_->stats().schedule.computed_tokens; }

  ManualClock clock_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<engine::Core> core_;
  gen::RequestId last_id_ = 0;
  uint64_t computed_last_ = 0;
};

model::RandomOptions hybrid_model() {
  return {.model_type = "lfm2", .layers = 4, .hidden = 96, .mlp = 64, .bits = 4};
}

model::RandomOptions delta_model() {
  return {.model_type = "qwen3_5", .layers = 4, .hidden = 96, .mlp = 64, .bits = 4};
}

model::RandomOptions state_model(const char* model_type) {
  return {
      .model_type = model_type, .layers = 5, .hidden = 96, .mlp = 64, .attends_from = 0, .bits = 4};
}

model::RandomOptions windowed_model() { return {.layers = 3, .bits = 4, .window = 24}; }

/// What a chat does: turns that go on, a changed last line, and back to the first again.
void check_turns(const model::RandomOptions& o, uint64_t most_again) {
  Served warm(o, true), cold(o, false);
  const Tokens first = random_tokens(230, o.vocab, 1);
  Tokens changed = first;
  for (size_t i = first.size() - 3; i < first.size(); ++i) changed[i] = (changed[i] + 1) % 100;
  const Tokens answer = cold.answer(first);
  CHECK(warm.answer(first) == answer);
  CHECK(warm.answer(changed) == cold.answer(changed));
  CHECK(warm.computed_last() <= most_again + 12);
  CHECK(warm.answer(first) == answer);
  CHECK(warm.computed_last() <= most_again + 12);
  Tokens next = first;
  next.insert(next.end(), answer.begin(), answer.end());
  next.push_back(7);
  CHECK(warm.answer(next) == cold.answer(next));
  CHECK(warm.computed_last() <= most_again + 12);
  Tokens middle(first.begin(), first.begin() + 120);
  middle.push_back(5);
  CHECK(warm.answer(middle) == cold.answer(middle));
}

TEST_CASE(
    "reuse: a hybrid model's turns are what a cold one answers, and one snapshot is computed") {
  check_turns(hybrid_model(), kReuseStep);
  check_turns(delta_model(), kReuseStep);
  for (const char* type : {"bailing_hybrid", "kimi_linear", "mamba2", "nemotron_h"})
    check_turns(state_model(type), kReuseStep);
}

TEST_CASE("reuse: a model that sees windows answers as a cold one, though pages were freed") {
  Served served(windowed_model(), true);
  CHECK(served.info().window == 24);
  check_turns(windowed_model(), 2 * kReusePage);
}

TEST_CASE("reuse: latent attention's turns are what a cold one answers") {
  check_turns({.model_type = "deepseek_v3", .layers = 3, .bits = 4}, 2 * kReusePage);
  check_turns({.model_type = "longcat_flash", .bits = 4}, 2 * kReusePage);
}

TEST_CASE("reuse: values of a width of their own are where they were, also behind windows") {
  check_turns({.model_type = "mimo_v2_flash", .layers = 3, .bits = 4, .window = 24},
              2 * kReusePage);
}

}  // namespace
}  // namespace tandem::runner
