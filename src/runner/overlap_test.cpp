// Steps issued before the tokens of the step before are known: with a real, tiny model on MLX's
// CPU.
#include <doctest/doctest.h>

#include <map>

#include "engine/core.h"
#include "model/random_checkpoint_test.h"
#include "runner/plans_test.h"

namespace tandem::runner {
namespace {

using model::RandomCheckpoint;
using model::RandomOptions;

std::unique_ptr<ModelRunner> load(bool overlap, const RandomOptions& model = {}) {
  auto runner = ModelRunner::load(
      std::make_shared<RandomCheckpoint>(model),
      {.path = tensor::Path::kPlain, .page_tokens = 4, .pages = 96, .overlap = overlap});
  REQUIRE(runner.has_value());
  REQUIRE((*runner)->reset(0).has_value());
  return std::move(runner).value();
}

plan::Row first_row(plan::RequestId id, Tokens prompt, std::optional<plan::Draw> draw) {
  return {.request = id,
          .tokens = std::move(prompt),
          .pages = {static_cast<plan::PageId>(2 * id), static_cast<plan::PageId>(2 * id + 1)},
          .wants_logits = !draw,
          .draw = draw};
}

plan::Row next_row(const plan::Row& before, plan::TokenId token) {
  plan::Row row = before;
  row.start += static_cast<uint32_t>(before.tokens.size());
  row.tokens = {token};
  row.numeric_class = plan::NumericClass::kStep;
  return row;
}

plan::TokenId largest(std::span<const float> logits) {
  return static_cast<plan::TokenId>(std::ranges::max_element(logits) - logits.begin());
}

/// The first tokens that a runner draws after 5 6 7.
Tokens answer_of(ModelRunner& runner) {
  Tokens out;
  plan::Row row = first_row(1, {5, 6, 7}, plan::Draw{});
  for (uint64_t step = 0; step < 4; ++step) {
    REQUIRE(runner.issue({.sequence = step, .rows = {row}}).has_value());
    out.push_back(runner.complete()->drawn[0]);
    row = next_row(row, out.back());
  }
  return out;
}

TEST_CASE("model runner: only a lone rank on the plain path draws, two steps in flight") {
  const auto info = [](ModelOptions options) {
    options.pages = 8;
    const auto runner =
        ModelRunner::load(std::make_shared<RandomCheckpoint>(RandomOptions{}), options);
    REQUIRE(runner.has_value());
    return (*runner)->info();
  };
  CHECK(info({.path = tensor::Path::kPlain}).draws);
  CHECK(info({.path = tensor::Path::kPlain}).depth == 2);
  for (const ModelOptions& options : {ModelOptions{.path = tensor::Path::kFast},
                                      ModelOptions{.path = tensor::Path::kPlain, .overlap = false},
                                      ModelOptions{.path = tensor::Path::kPlain, .ranks = 2}}) {
    CHECK_FALSE(info(options).draws);
    CHECK(info(options).depth == 1);
  }
}

TEST_CASE("model runner: a row goes on with the token that the step before drew") {
  const auto ahead = load(true), known = load(false);
  plan::Row row = first_row(1, {5, 6, 7}, plan::Draw{});
  plan::Row same = first_row(1, {5, 6, 7}, {});
  REQUIRE(ahead->issue({.sequence = 0, .rows = {row}}).has_value());
  for (uint64_t step = 1; step < 5; ++step) {
    row = next_row(row, plan::kDrawn);
    REQUIRE(ahead->issue({.sequence = step, .rows = {row}}).has_value());
    const auto drawn = ahead->complete();  // of the step before the one just issued
    REQUIRE(drawn.has_value());
    CHECK(drawn->sequence == step - 1);
    CHECK(drawn->logits.empty());
    REQUIRE(known->issue({.sequence = step - 1, .rows = {same}}).has_value());
    const plan::TokenId expected = largest(known->complete()->logits);
    REQUIRE(drawn->drawn.size() == 1);
    CHECK(drawn->drawn[0] == expected);
    same = next_row(same, expected);
  }
}

TEST_CASE("model runner: rows that draw and rows for the host share a step, in any order") {
  const auto together = load(true), alone = load(true);
  const plan::Draw seeded{.temperature = 1, .top_k = 20, .seed = 4};
  const std::vector<plan::Row> rows = {first_row(1, {9, 8}, {}), first_row(2, {3, 4, 5}, seeded),
                                       first_row(3, {7}, plan::Draw{}), first_row(4, {1, 1}, {})};
  REQUIRE(together->issue({.rows = rows}).has_value());
  const auto all = together->complete();
  REQUIRE(all.has_value());
  REQUIRE(all->logits.size() == 2 * 101);
  REQUIRE(all->drawn.size() == 2);
  for (uint64_t i = 0; i < rows.size(); ++i) {
    REQUIRE(alone->issue({.sequence = i, .rows = {rows[i]}}).has_value());
    const auto one = alone->complete();
    REQUIRE(one.has_value());
    if (rows[i].draw) {
      CHECK(one->drawn[0] == all->drawn[i == 1 ? 0 : 1]);
    } else {
      const auto part = all->logits.subspan(i == 0 ? 0 : 101, 101);
      CHECK(largest_difference(to_vector(one->logits), to_vector(part)) <= 2e-4F);
    }
  }
}

TEST_CASE("model runner: draws that do not fit are refused and change nothing") {
  const auto runner = load(true);
  const auto refused = [](ModelRunner& by, plan::StepPlan plan) {
    const Status status = by.issue(plan);
    return !status && status.error().code == ErrorCode::kInvalid;
  };
  plan::Row both = first_row(1, {1}, plan::Draw{});
  both.wants_logits = true;
  CHECK(refused(*runner, {.rows = {both}}));
  CHECK(refused(*runner, {.rows = {first_row(1, {plan::kDrawn}, plan::Draw{})}}));
  const plan::Row first = first_row(1, {1, 2}, plan::Draw{});
  REQUIRE(runner->issue({.rows = {first}}).has_value());
  plan::Row more = next_row(first, plan::kDrawn);
  more.tokens.push_back(3);
  CHECK(refused(*runner, {.sequence = 1, .rows = {more}}));
  CHECK(refused(*runner, {.sequence = 1, .rows = {first_row(2, {plan::kDrawn}, {})}}));
  REQUIRE(runner->issue({.sequence = 1, .rows = {next_row(first, plan::kDrawn)}}).has_value());
  CHECK(refused(*runner, {.sequence = 2, .rows = {first_row(3, {1}, {})}}));  // two in flight
  CHECK(runner->complete().has_value());
  CHECK(runner->complete().has_value());
  CHECK(refused(*load(false), {.rows = {first}}));
}

TEST_CASE("model runner: abort voids steps in flight, and after reset the same tokens come") {
  const auto runner = load(true);
  const plan::Row row = first_row(1, {5, 6, 7}, plan::Draw{});
  const auto run_two = [&](uint32_t epoch) {
    REQUIRE(runner->issue({.epoch = epoch, .rows = {row}}).has_value());
    REQUIRE(runner->issue({.epoch = epoch, .sequence = 1, .rows = {next_row(row, plan::kDrawn)}})
                .has_value());
  };
  run_two(0);
  const plan::TokenId first = runner->complete()->drawn[0];
  const plan::TokenId second = runner->complete()->drawn[0];
  REQUIRE(runner->reset(1).has_value());
  run_two(1);
  runner->abort();
  CHECK(runner->complete().error().code == ErrorCode::kPeerLost);
  CHECK(runner->issue({.epoch = 1, .sequence = 2}).error().code == ErrorCode::kPeerLost);
  REQUIRE(runner->reset(2).has_value());
  CHECK(runner->issue({.epoch = 2, .rows = {next_row(row, plan::kDrawn)}}).error().code ==
        ErrorCode::kInvalid);
  run_two(2);
  CHECK(runner->complete()->drawn[0] == first);
  CHECK(runner->complete()->drawn[0] == second);
}

TEST_CASE("model runner: a step that fails while it is issued voids those in flight") {
  int steps = 0;
  const auto runner = std::move(*ModelRunner::load(
      std::make_shared<RandomCheckpoint>(RandomOptions{}),
      {.path = tensor::Path::kPlain, .page_tokens = 4, .pages = 96, .before_layers = [&] {
         if (++steps == 2) throw std::runtime_error("test");
       }}));
  REQUIRE(runner->reset(0).has_value());
  const plan::Row row = first_row(1, {5, 6, 7}, plan::Draw{});
  REQUIRE(runner->issue({.rows = {row}}).has_value());
  const Status failed = runner->issue({.sequence = 1, .rows = {next_row(row, plan::kDrawn)}});
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error().code == ErrorCode::kInternal);
  CHECK(runner->complete().error().code == ErrorCode::kPeerLost);
  REQUIRE(runner->reset(1).has_value());
  REQUIRE(runner->issue({.epoch = 1, .rows = {row}}).has_value());
  CHECK(runner->complete().has_value());
}

TEST_CASE("model runner: the state hash is the same whether the device or the plan had the token") {
  const auto hashes = [](ModelRunner& runner, std::vector<plan::TokenId> tokens) {
    std::vector<uint64_t> out;
    plan::Row row = first_row(1, {5, 6, 7}, plan::Draw{});
    for (uint64_t step = 0; step <= tokens.size(); ++step) {
      if (step > 0) row = next_row(row, tokens[step - 1]);
      REQUIRE(runner.issue({.sequence = step, .rows = {row}}).has_value());
      if (step > 0) out.push_back(runner.complete()->state_hash);
    }
    out.push_back(runner.complete()->state_hash);
    return out;
  };
  const auto drawn = answer_of(*load(true));
  CHECK(hashes(*load(true), Tokens(drawn.size(), plan::kDrawn)) == hashes(*load(true), drawn));
}

/// Passes on to a runner and looks at what is in flight.
class Counting final : public engine::Runner {
 public:
  explicit Counting(engine::Runner& inner) : inner_(inner) {}
  engine::RunnerInfo info() const override { return inner_.info(); }
  Status issue(const plan::StepPlan& plan) override {
    for (const plan::Row& row : plan.rows) rows_ahead += row.tokens[0] == plan::kDrawn;
    ++in_flight_;
    return inner_.issue(plan);
  }
  Result<engine::StepResult> complete() override {
    steps_with_next += in_flight_-- > 1;
    return inner_.complete();
  }
  Status reset(uint32_t epoch) override { return inner_.reset(epoch); }
  void abort() override { inner_.abort(); }

  int rows_ahead = 0;
  int steps_with_next = 0;  // completed when the next had been issued

 private:
  engine::Runner& inner_;
  int in_flight_ = 0;
};

struct Answers {
  std::map<gen::RequestId, Tokens> tokens;
  std::map<gen::RequestId, gen::FinishReason> reasons;
  int rows_ahead = 0;
  int steps_with_next = 0;
};

Answers answer(bool overlap,
               const std::vector<gen::Request>& requests,
               const RandomOptions& options = {}) {
  const auto model = load(overlap, options);
  Counting runner(*model);
  const ManualClock clock;
  engine::Core core(runner, clock, {.schedule = {.max_rows = 8, .step_tokens = 16}});
  REQUIRE(core.reset(0).has_value());
  Answers out;
  for (const gen::Request& request : requests)
    core.submit(request, [&out](const gen::Event& event) {
      CHECK_FALSE(out.reasons.contains(event.request));  // nothing comes after the end
      if (const auto* tokens = std::get_if<gen::Tokens>(&event.body))
        for (const gen::Token& token : tokens->tokens)
          out.tokens[event.request].push_back(token.id);
      if (const auto* finished = std::get_if<gen::Finished>(&event.body))
        out.reasons[event.request] = finished->reason;
    });
  while (core.step()) {
  }
  CHECK(core.empty());
  CHECK(core.scheduler()->is_consistent());
  out.rows_ahead = runner.rows_ahead;
  out.steps_with_next = runner.steps_with_next;
  return out;
}

/// Greedy, seeded and filtered ones, and ones that the host must draw.
std::vector<gen::Request> mixed_requests() {
  std::vector<gen::Request> requests;
  for (gen::RequestId id = 1; id <= 8; ++id) {
    gen::Request request{.id = id, .prompt = random_tokens(3 + 5 * id, 101, id), .max_tokens = 20};
    if (id % 2 == 0) request.sampling = {.temperature = 0.9F, .seed = id};
    if (id % 4 == 0) request.sampling.top_p = 0.8F;
    if (id % 8 == 6) request.sampling.top_k = 12;
    if (id % 3 == 0) request.sampling.frequency = {.value = 0.5F};
    requests.push_back(std::move(request));
  }
  return requests;
}

TEST_CASE("overlap: a model gives the same tokens with it and without it, mixed with host draws") {
  const std::vector<gen::Request> requests = mixed_requests();
  for (const RandomOptions& model : {RandomOptions{},
                                     {.model_type = "mistral", .bits = 4, .window = 5},
                                     {.model_type = "qwen3", .heads = 10, .kv_heads = 2}}) {
    CAPTURE(model.model_type);
    const Answers ahead = answer(true, requests, model);
    const Answers one_by_one = answer(false, requests, model);
    CHECK(ahead.tokens == one_by_one.tokens);
    CHECK(ahead.tokens.size() == requests.size());
    CHECK(ahead.rows_ahead > 80);
    CHECK(ahead.steps_with_next >= 18);
    CHECK(one_by_one.rows_ahead == 0);
  }
}

TEST_CASE("overlap: a stop id in the middle ends the answer and no later token shows") {
  std::vector<gen::Request> requests = mixed_requests();
  const Answers whole = answer(true, requests);
  for (gen::Request& request : requests) {
    const Tokens& tokens = whole.tokens.at(request.id);
    request.stop_ids = {tokens[tokens.size() / 2]};
  }
  const Answers stopped = answer(true, requests);
  CHECK(stopped.rows_ahead > 20);
  for (const gen::Request& request : requests) {
    const Tokens& all = whole.tokens.at(request.id);
    const auto stop = std::ranges::find(all, request.stop_ids[0]);
    CHECK(stopped.tokens.at(request.id) == Tokens(all.begin(), stop + 1));
    CHECK(stopped.reasons.at(request.id) == gen::FinishReason::kStop);
  }
}

}  // namespace
}  // namespace tandem::runner
