// Promise 1: what a request's steps compute does not depend on what else runs.
#include <doctest/doctest.h>

#include <array>
#include <map>

#include "engine/core.h"
#include "model/random_checkpoint_test.h"
#include "runner/plans_test.h"

namespace tandem::runner {
namespace {

/// Logits by the position of the token that they are for.
using ByPosition = std::map<uint32_t, Logits>;

/// Keeps the logits of every row that passes through.
class Watching final : public engine::Runner {
 public:
  explicit Watching(engine::Runner& inner) : inner_(inner) {}

  engine::RunnerInfo info() const override { return inner_.info(); }
  Status issue(const plan::StepPlan& plan) override {
    plan_ = plan;
    most_rows = std::max(most_rows, plan.rows.size());
    return inner_.issue(plan);
  }
  Result<engine::StepResult> complete() override {
    auto result = inner_.complete();
    REQUIRE(result.has_value());
    size_t at = 0;
    const size_t vocab = info().vocab;
    for (const plan::Row& row : plan_.rows) {
      if (!row.wants_logits) continue;
      seen[row.request][row.start + static_cast<uint32_t>(row.tokens.size())] =
          to_vector(result->logits.subspan(at++ * vocab, vocab));
    }
    return result;
  }
  Status reset(uint32_t epoch) override { return inner_.reset(epoch); }
  void abort() override { inner_.abort(); }

  std::map<gen::RequestId, ByPosition> seen;
  size_t most_rows = 0;  // of a step

 private:
  engine::Runner& inner_;
  plan::StepPlan plan_;
};

/// A runner of a tiny model, the engine above it, and what came of its requests.
struct World {
  std::unique_ptr<ModelRunner> model;
  std::unique_ptr<Watching> runner;
  ManualClock clock;
  std::unique_ptr<engine::Core> core;
  std::map<gen::RequestId, Tokens> answers;
  uint32_t cached = 0;  // prompt tokens that were reused

  World(const model::RandomOptions& o, uint32_t pages, uint32_t step_tokens) {
    auto loaded =
        ModelRunner::load(std::make_shared<model::RandomCheckpoint>(o),
                          {.threads = 2, .page_tokens = 4, .pages = pages, .deterministic = true});
    REQUIRE(loaded.has_value());
    model = std::move(loaded).value();
    runner = std::make_unique<Watching>(*model);
    core = std::make_unique<engine::Core>(
        *runner, clock,
        engine::EngineOptions{.schedule = {.max_rows = 6, .step_tokens = step_tokens}});
    REQUIRE(core->reset(0).has_value());
  }

  void submit(const gen::Request& request) {
    core->submit(request, [this](const gen::Event& event) {
      if (const auto* started = std::get_if<gen::Started>(&event.body))
        cached += started->cached_tokens;
      if (const auto* tokens = std::get_if<gen::Tokens>(&event.body))
        for (const gen::Token& token : tokens->tokens) answers[event.request].push_back(token.id);
    });
  }
};

/// Prompts of which some begin with others, so that a later one finds pages of an earlier one.
std::vector<gen::Request> related_requests(uint64_t seed, uint32_t vocab, uint32_t reuse) {
  std::mt19937_64 random(seed);
  std::vector<gen::Request> requests;
  for (gen::RequestId id = 1; id <= 7; ++id) {
    Tokens prompt;
    if (id > 2 && random() % 3 != 0) {
      const Tokens& before = requests[random() % requests.size()].prompt;
      prompt.assign(before.begin(),
                    before.begin() + static_cast<ptrdiff_t>(1 + random() % before.size()));
    }
    for (const plan::TokenId token : random_tokens(1 + random() % 30, vocab, seed * 100 + id))
      prompt.push_back(token);
    gen::Request request{.id = id, .prompt = prompt};
    request.max_tokens = 1 + static_cast<uint32_t>(random() % (reuse > 0 ? 40 : 12));
    if (id % 3 != 0) request.index_reuse = reuse;
    if (id % 2 == 0) request.sampling = {.temperature = 0.9F, .seed = id};
    requests.push_back(std::move(request));
  }
  return requests;
}

/// Runs all requests at random times, twice each, and compares every row's logits with those of the
/// request alone in a new process, bit for bit.
void check_interleaving(const model::RandomOptions& o, uint64_t seed, uint32_t reuse = 0) {
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const auto requests = related_requests(seed, o.vocab, reuse);
  const uint32_t pages = seed % 3 == 0 ? 24 : 96;  // few: rows are paused, and resumed
  World together(o, pages, 8 + static_cast<uint32_t>(random() % 40));
  std::vector<gen::Request> left = requests;
  for (gen::Request again : requests) {  // warm
    again.id += 100;
    left.push_back(std::move(again));
  }
  std::shuffle(left.begin(), left.end(), random);
  while (!left.empty() || !together.core->empty()) {
    while (!left.empty() && (together.core->empty() || random() % 3 == 0)) {
      together.submit(left.back());
      left.pop_back();
    }
    together.core->step();
  }
  CHECK(together.runner->most_rows > 1);
  CHECK(together.cached > 0);
  for (const gen::Request& request : requests) {
    World alone(o, 96, plan::kStepTokens);
    alone.submit(request);
    while (alone.core->step()) {
    }
    const ByPosition& expected = alone.runner->seen.at(request.id);
    for (const gen::RequestId id : {request.id, request.id + 100}) {
      CHECK(together.answers.at(id) == alone.answers.at(request.id));
      for (const auto& [position, logits] : together.runner->seen.at(id)) {
        REQUIRE(expected.contains(position));
        CHECK(logits == expected.at(position));
      }
    }
  }
}

TEST_CASE("50 interleavings of cold, warm, batched and paused requests equal each alone, bitwise") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    switch (seed % 3) {
      case 0:
        check_interleaving({.bits = 4}, seed);
        break;
      case 1:
        check_interleaving({.model_type = "qwen3", .heads = 10, .kv_heads = 2}, seed);
        break;
      default:
        check_interleaving({.model_type = "mistral", .bits = 8, .window = 5}, seed);
    }
  }
}

TEST_CASE("interleavings of requests that reuse choices of blocks equal each alone, bitwise") {
  for (uint64_t seed = 0; seed < 16; ++seed)
    check_interleaving({.model_type = "minimax_m3_vl_text", .bits = 4}, seed,
                       std::array<uint32_t, 4>{1, 3, 20, gen::kMostIndexReuse}[seed % 4]);
}

}  // namespace
}  // namespace tandem::runner
