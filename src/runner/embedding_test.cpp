// Hidden states that are pooled: however a prompt is cut, whatever runs beside it, over any ranks.
#include <cmath>
#include <map>

#include "base/clock.h"
#include "engine/core.h"
#include "runner/ranks_test.h"

namespace tandem::runner {
namespace {

using Vector = std::vector<float>;

/// A model behind an engine, for requests of any kind.
class Embedding {
 public:
  Embedding(const model::RandomOptions& o, uint32_t step_tokens, ModelOptions options = {}) {
    options.page_tokens = 4;
    options.pages = 200;
    options.window_pages = o.window != 0 ? 80U : 0U;
    options.state_slots = o.has_states() ? 40U : 0U;
    options.state_step = o.has_states() ? 16U : 0U;
    options.max_step_tokens = 64;
    options.frees_windows = o.window != 0;
    auto loaded = ModelRunner::load(std::make_shared<model::RandomCheckpoint>(o), options);
    TANDEM_CHECK(loaded.has_value(), "{}", loaded.error().message);
    runner_ = std::move(loaded).value();
    core_ = std::make_unique<engine::Core>(
        *runner_, clock_, engine::EngineOptions{.schedule = {.step_tokens = step_tokens}});
    TANDEM_CHECK(core_->reset(1).has_value(), "reset failed");
  }

  void submit(gen::Request request) {
    core_->submit(std::move(request), [this](const gen::Event& event) {
      const gen::RequestId id = event.request;
      if (const auto* vector = std::get_if<gen::Embedding>(&event.body))
        vectors[id] = vector->values;
      if (const auto* started = std::get_if<gen::Started>(&event.body))
        cached[id] = started->cached_tokens;
      if (const auto* some = std::get_if<gen::Tokens>(&event.body))
        for (const gen::Token& token : some->tokens) answers[id].push_back(token.id);
      CHECK_FALSE(std::holds_alternative<gen::Failed>(event.body));
    });
  }

  void run() {
    while (!core_->empty()) core_->step();
  }

  Vector embed(gen::RequestId id, const Tokens& prompt, gen::Pooling pooling) {
    submit({.id = id, .prompt = prompt, .pooling = pooling});
    run();
    return vectors.at(id);
  }

  Tokens answer(gen::RequestId id, const Tokens& prompt) {
    submit({.id = id, .prompt = prompt, .max_tokens = 6, .ignore_eos = true});
    run();
    return answers.at(id);
  }

  std::map<gen::RequestId, Vector> vectors;
  std::map<gen::RequestId, uint32_t> cached;
  std::map<gen::RequestId, Tokens> answers;

 private:
  ManualClock clock_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<engine::Core> core_;
};

const std::vector<model::RandomOptions> kPooledModels = {
    {.bits = 4},
    {.layers = 3, .bits = 4, .window = 24},
    {.model_type = "qwen3_5", .layers = 4, .hidden = 96, .mlp = 64, .bits = 4},
    {.model_type = "deepseek_v3", .layers = 3, .bits = 4}};

void check_pooled_near(const Vector& a, const Vector& b, float tolerance) {
  REQUIRE(!a.empty());
  CHECK(largest_difference(a, b) <= tolerance);
}

TEST_CASE("embeddings: a prompt in chunks, beside others or again gives what it gives alone") {
  for (const model::RandomOptions& o : kPooledModels) {
    CAPTURE(o.model_type);
    std::vector<Tokens> prompts;
    for (const size_t length : {1U, 7U, 30U, 61U, 100U})
      prompts.push_back(random_tokens(length, o.vocab, length));
    Embedding together(o, 24);
    gen::RequestId id = 0;
    for (int round = 0; round < 2; ++round)
      for (const Tokens& prompt : prompts) {
        together.submit({.id = ++id, .prompt = prompt, .pooling = gen::Pooling::kMean});
        together.submit({.id = ++id, .prompt = prompt, .pooling = gen::Pooling::kLast});
        together.submit({.id = ++id, .prompt = prompt, .max_tokens = 9, .ignore_eos = true});
      }
    together.run();
    Embedding alone(o, 64);
    for (gen::RequestId at = 1; at <= id; at += 3) {
      const Tokens& prompt = prompts[(at - 1) / 3 % prompts.size()];
      CHECK(together.cached.at(at) == 0);
      check_pooled_near(together.vectors.at(at),
                        alone.embed(1000 + at, prompt, gen::Pooling::kMean), 1e-6F);
      CHECK(together.vectors.at(at + 1) == alone.embed(2000 + at, prompt, gen::Pooling::kLast));
    }
  }
}

TEST_CASE("embeddings: they find no pages and leave none, and answers beside them stay the same") {
  for (const model::RandomOptions& o : kPooledModels) {
    CAPTURE(o.model_type);
    const Tokens prompt = random_tokens(41, o.vocab, 9);
    Embedding cold(o, 64), warm(o, 64);
    const Tokens answer = cold.answer(1, prompt);
    const Vector mean = warm.embed(1, prompt, gen::Pooling::kMean);
    CHECK(warm.answer(2, prompt) == answer);
    CHECK(warm.cached.at(2) == 0);
    CHECK(warm.embed(3, prompt, gen::Pooling::kMean) == mean);
    CHECK(warm.cached.at(3) == 0);
    CHECK(warm.answer(4, prompt) == answer);
    CHECK(warm.cached.at(4) > 30);  // of the answer before, that is
  }
}

TEST_CASE(
    "embeddings: steps of one shape with and without pooling do not take each other's place") {
  const model::RandomOptions o{.bits = 4};
  const Tokens prompt = random_tokens(12, o.vocab, 2);
  Embedding one(o, 64), other(o, 64);
  const Vector mean = one.embed(1, prompt, gen::Pooling::kMean);
  const Vector last = other.embed(1, prompt, gen::Pooling::kLast);
  CHECK(one.embed(2, prompt, gen::Pooling::kLast) == last);
  CHECK(one.answer(3, prompt) == other.answer(3, prompt));
  CHECK(other.embed(4, prompt, gen::Pooling::kMean) == mean);
  CHECK(one.embed(5, prompt, gen::Pooling::kMean) == mean);
}

TEST_CASE("embeddings: a device that works by itself pools what the CPU's fast path does") {
  for (const model::RandomOptions& o : kPooledModels) {
    const Tokens prompt = random_tokens(50, o.vocab, 4);
    for (const bool overlap : {false, true}) {
      Embedding fast(o, 24), plain(o, 24,
                                   {.path = tensor::Path::kPlain,
                                    .device = tensor::mx::Device::cpu,
                                    .overlap = overlap});
      for (const gen::Pooling pooling : {gen::Pooling::kMean, gen::Pooling::kLast}) {
        const auto id = static_cast<gen::RequestId>(pooling) + 1;
        plain.submit({.id = 9 + id, .prompt = prompt, .max_tokens = 3, .ignore_eos = true});
        check_pooled_near(plain.embed(id, prompt, pooling), fast.embed(id, prompt, pooling), 5e-4F);
      }
    }
  }
}

/// One prompt in chunks; each row's sum.
std::vector<plan::StepPlan> pooling_plans(uint32_t vocab, gen::Pooling pooling) {
  auto plans = chunked_plans(random_tokens(45, vocab, 3), 16, 64, 4);
  for (plan::StepPlan& plan : plans) {
    plan.rows[0].wants_logits = false;
    plan.rows[0].pooling = pooling;
  }
  return plans;
}

TEST_CASE("embeddings: over ranks and in a pipeline rank 0 has what one rank has") {
  for (const gen::Pooling pooling : {gen::Pooling::kMean, gen::Pooling::kLast}) {
    const model::RandomOptions o{.layers = 4, .bits = 4};
    const auto plans = pooling_plans(o.vocab, pooling);
    const auto alone = run_ranks({.model = o}, plans);
    REQUIRE(alone.errors.empty());
    CHECK(alone.pooled[0].size() == o.hidden);
    CHECK(alone.logits[0].empty());
    for (const auto split : {topology::Split::kTensor, topology::Split::kPipeline})
      for (const uint32_t ranks : {2U, 3U})
        for (const auto path : {tensor::Path::kFast, tensor::Path::kPlain}) {
          const auto found =
              run_ranks({.model = o, .path = path, .split = split, .ranks = ranks}, plans);
          REQUIRE(found.errors.empty());
          REQUIRE(found.pooled.size() == alone.pooled.size());
          for (size_t i = 0; i < plans.size(); ++i)
            check_pooled_near(found.pooled[i], alone.pooled[i], 2e-3F);
        }
  }
}

}  // namespace
}  // namespace tandem::runner
