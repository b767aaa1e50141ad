// Pages that are given back behind a window: whoever gets them next, answers are those of a model
// that keeps every position.
#include <doctest/doctest.h>

#include "model/random_checkpoint_test.h"
#include "runner/plans_test.h"
#include "runner/ranks_test.h"
#include "runner/warm_up.h"

namespace tandem::runner {
namespace {

using model::RandomCheckpoint;
using model::RandomOptions;

constexpr uint32_t kPages = 160, kStep = 24;

struct Setup {
  RandomOptions model;
  tensor::Path path = tensor::Path::kFast;
  KvType kv_type = KvType::kAuto;
  uint32_t page_tokens = 4;
  uint32_t window_pages = 0;  // 0: layers keep all positions
  bool windows_everywhere = false;
};

std::unique_ptr<ModelRunner> load_windowed(const Setup& s) {
  auto checkpoint = std::make_shared<RandomCheckpoint>(s.model);
  if (s.windows_everywhere)
    checkpoint->set("layer_types", std::vector<std::string>(s.model.layers, "sliding_attention"));
  auto runner = ModelRunner::load(checkpoint, {.path = s.path,
                                               .kv_type = s.kv_type,
                                               .threads = 2,
                                               .page_tokens = s.page_tokens,
                                               .pages = kPages,
                                               .window_pages = s.window_pages,
                                               .max_step_tokens = kStep,
                                               .frees_windows = s.window_pages != 0});
  REQUIRE(runner.has_value());
  REQUIRE((*runner)->reset(0).has_value());
  return std::move(runner).value();
}

Logits logits_of(ModelRunner& runner, const plan::StepPlan& plan) {
  REQUIRE(runner.issue(plan).has_value());
  const auto result = runner.complete();
  REQUIRE(result.has_value());
  return to_vector(result->logits);
}

/// Histories that run together in random chunks, two thirds of them at once; a finished one gives
/// its pages back and another takes its place.
class Crowd {
 public:
  Crowd(const Setup& setup, uint64_t seed, size_t histories)
      : random_(seed),
        pages_(kPages, setup.page_tokens, seed),
        window_pages_(setup.window_pages, setup.page_tokens, seed + 1) {
    for (uint64_t i = 0; i < histories; ++i)
      waiting_.push_back(
          {.id = i + 1,
           .tokens = random_tokens(1 + random_() % 90, setup.model.vocab, seed * 100 + i)});
  }

  /// The next plan, with at least one row; none when all are done.
  std::optional<plan::StepPlan> next(uint32_t window) {
    while (running_.size() < 3 && !waiting_.empty()) {
      running_.push_back(std::move(waiting_.back()));
      waiting_.pop_back();
    }
    if (running_.empty()) return std::nullopt;
    plan::StepPlan plan{.sequence = sequence_++};
    for (History& history : running_) {
      if (!plan.rows.empty() && random_() % 4 == 0) continue;
      plan.rows.push_back(
          history.next(random_() % 3 == 0 ? 1 : 1 + random_() % kStep, pages_, true));
      history.show(plan.rows.back(), window, window_pages_);
    }
    std::erase_if(running_, [&](History& history) {
      if (history.done < history.tokens.size()) return false;
      pages_.take_back(history.pages, history.pages.size());
      window_pages_.take_back(history.window_pages, history.window_pages.size());
      return true;
    });
    return plan;
  }

 private:
  std::mt19937_64 random_;
  Pages pages_, window_pages_;
  std::vector<History> waiting_, running_;
  uint64_t sequence_ = 0;
};

std::vector<plan::StepPlan> crowd_plans(const Setup& setup, uint64_t seed, size_t histories) {
  Crowd crowd(setup, seed, histories);
  std::vector<plan::StepPlan> plans;
  while (auto plan = crowd.next(setup.model.window)) plans.push_back(*std::move(plan));
  return plans;
}

/// As a runner is sent it whose layers all keep all positions.
plan::StepPlan without_windows(plan::StepPlan plan) {
  plan.window_copies.clear();
  for (plan::Row& row : plan.rows) {
    row.window_start = 0;
    row.window_pages.clear();
  }
  return plan;
}

/// The least window pages that three rows can live on.
uint32_t scarce_pages(const Setup& s) {
  return 3 * ((s.model.window - 1 + kStep + s.page_tokens - 1) / s.page_tokens + 1);
}

void check_as_full(Setup setup, uint64_t seed, float tolerance) {
  CAPTURE(setup.model.model_type);
  CAPTURE(setup.page_tokens);
  CAPTURE(seed);
  const auto full = load_windowed(setup);
  CHECK(full->info().window == 0);
  setup.window_pages = scarce_pages(setup);
  const auto freeing = load_windowed(setup);
  CHECK(freeing->info().window == setup.model.window);
  CHECK(freeing->info().window_pages == setup.window_pages);
  CHECK(freeing->cache_bytes() < full->cache_bytes());
  for (const plan::StepPlan& plan : crowd_plans(setup, seed, 8)) {
    const Logits want = logits_of(*full, without_windows(plan)), got = logits_of(*freeing, plan);
    if (tolerance == 0)
      CHECK(got == want);
    else
      CHECK(largest_difference(got, want) <= tolerance);
  }
}

const std::vector<RandomOptions> kWindowed = {
    {.model_type = "mistral", .layers = 3, .window = 5},
    {.model_type = "mistral", .layers = 3, .heads = 9, .kv_heads = 3, .bits = 4, .window = 21},
    {.model_type = "llama", .layers = 2, .window = 1},
};

TEST_CASE("window pages that others wrote meanwhile change no bit on the fast path") {
  for (const RandomOptions& o : kWindowed)
    for (const uint32_t page_tokens : {4U, 8U, 16U})
      for (const KvType type : {KvType::kF32, KvType::kF16})
        for (uint64_t seed = 1; seed <= 2; ++seed)
          check_as_full({.model = o, .kv_type = type, .page_tokens = page_tokens}, seed, 0);
}

TEST_CASE("window pages that others wrote meanwhile do not matter on the plain path") {
  for (const RandomOptions& o : kWindowed)
    for (const uint32_t page_tokens : {4U, 16U})
      check_as_full({.model = o, .path = tensor::Path::kPlain, .page_tokens = page_tokens}, 1,
                    1e-5F);
}

TEST_CASE("a model whose layers all see a window needs no memory for other pages") {
  Setup setup{.model = kWindowed[0], .windows_everywhere = true};
  const auto full = load_windowed(setup);
  setup.window_pages = 40;
  const auto freeing = load_windowed(setup);
  CHECK(freeing->cache_bytes() * kPages == full->cache_bytes() * 40);
  for (const plan::StepPlan& plan : crowd_plans(setup, 1, 6))
    CHECK(logits_of(*freeing, plan) == logits_of(*full, without_windows(plan)));
}

TEST_CASE("a copied window page serves another request, and the original stays as it was") {
  for (const tensor::Path path : {tensor::Path::kFast, tensor::Path::kPlain}) {
    const Setup setup{.model = kWindowed[0], .path = path, .window_pages = 40};
    const auto runner = load_windowed(setup);
    const Tokens tokens = random_tokens(30, setup.model.vocab, 3);
    Tokens other(tokens.begin(), tokens.begin() + 26);
    other.insert(other.end(), {1, 2, 3, 4});
    // Alone: 26 tokens, then 4.
    const auto solo = [&](const Tokens& all) {
      Pages pages(kPages, 4, 1), window_pages(40, 4, 2);
      History history{.id = 1, .tokens = all};
      REQUIRE(runner->reset(0).has_value());
      Logits last;
      for (const auto& [sequence, count] : {std::pair(0, 24), std::pair(1, 2), std::pair(2, 4)}) {
        plan::StepPlan plan{.sequence = static_cast<uint64_t>(sequence)};
        plan.rows.push_back(history.next(static_cast<size_t>(count), pages, true));
        history.show(plan.rows[0], setup.model.window, window_pages);
        last = logits_of(*runner, plan);
      }
      return last;
    };
    const Logits want = solo(tokens), want_other = solo(other);
    REQUIRE(runner->reset(0).has_value());
    // Positions 20 to 27 lie in window pages 7 and 9, and 24 to 27 in page 3 too, for the other.
    const std::vector<plan::PageId> pages = {0, 1, 2, 3, 4, 5, 6, 7};
    const auto row = [&](uint64_t id, uint32_t start, const Tokens& all, size_t end) {
      return plan::Row{.request = id,
                       .start = start,
                       .tokens = Tokens(all.begin() + start, all.begin() + static_cast<int>(end)),
                       .pages = pages,
                       .wants_logits = true};
    };
    plan::StepPlan first{.rows = {row(1, 0, tokens, 24)}};
    first.rows[0].window_pages = {30, 31, 32, 33, 34, 7};
    logits_of(*runner, first);
    plan::StepPlan second{.sequence = 1, .rows = {row(1, 24, tokens, 26)}};
    second.rows[0].window_start = 20;
    second.rows[0].window_pages = {7, 9};
    logits_of(*runner, second);
    plan::StepPlan forked{.sequence = 2,
                          .copies = {{6, 16}, {7, 17}},
                          .window_copies = {{9, 3}},
                          .rows = {row(2, 26, other, 30), row(1, 26, tokens, 30)}};
    forked.rows[0].pages = {0, 1, 2, 3, 4, 5, 16, 17};
    forked.rows[0].window_start = forked.rows[1].window_start = 20;
    forked.rows[0].window_pages = {7, 3, 8};
    forked.rows[1].window_pages = {7, 9, 10};
    Logits both = want_other;
    both.insert(both.end(), want.begin(), want.end());
    CHECK(largest_difference(logits_of(*runner, forked), both) <= 1e-5F);
  }
}

TEST_CASE("a warmed-up runner with window pages gives the same results") {
  Setup setup{.model = kWindowed[0], .window_pages = 40};
  const plan::StepPlan plan = crowd_plans(setup, 5, 1)[0];
  for (const tensor::Path path : {tensor::Path::kFast, tensor::Path::kPlain}) {
    setup.path = path;
    const Logits cold = logits_of(*load_windowed(setup), plan);
    const auto runner = load_windowed(setup);
    REQUIRE(warm_up(*runner).has_value());
    REQUIRE(runner->reset(0).has_value());
    CHECK(logits_of(*runner, plan) == cold);
  }
}

TEST_CASE("ranks of either split give window pages back as one rank does") {
  for (const auto split : {topology::Split::kTensor, topology::Split::kPipeline})
    for (const uint32_t ranks : {2U, 3U}) {
      CAPTURE(ranks);
      Setup setup{.model = kWindowed[1]};
      setup.window_pages = scarce_pages(setup);
      const auto plans = crowd_plans(setup, ranks, 6);
      RanksSetup over = {.model = setup.model, .split = split, .ranks = ranks, .pages = kPages};
      std::vector<plan::StepPlan> plain;
      for (const plan::StepPlan& plan : plans) plain.push_back(without_windows(plan));
      const RanksOutcome full = run_ranks(over, plain);
      over.window_pages = setup.window_pages;
      const RanksOutcome freeing = run_ranks(over, plans);
      for (const RanksOutcome* outcome : {&full, &freeing})
        for (const Error& error : outcome->errors) FAIL(error.message);
      CHECK(freeing.logits == full.logits);
      CHECK(freeing.hashes[0] == freeing.hashes[1]);
    }
}

TEST_CASE("windows have pages of their own where that saves memory, or where it is asked for") {
  const auto info_of = [](uint32_t window, const ModelOptions& options) {
    const RandomOptions o{.model_type = "mistral", .window = window};
    const auto runner = ModelRunner::load(std::make_shared<RandomCheckpoint>(o), options);
    REQUIRE(runner.has_value());
    return (*runner)->info();
  };
  // The model's context is 512.
  CHECK(info_of(100, {.pages = 64, .max_step_tokens = 411}).window == 100);
  CHECK(info_of(100, {.pages = 64, .max_step_tokens = 412}).window == 0);
  CHECK(info_of(100, {.pages = 64, .max_context = 400, .max_step_tokens = 300}).window == 0);
  CHECK(info_of(100, {.pages = 64, .max_step_tokens = 64, .frees_windows = false}).window == 0);
  CHECK(info_of(0, {.pages = 64, .max_step_tokens = 64}).window == 0);
  CHECK(info_of(100, {.pages = 64, .window_pages = 30}).window == 100);
  CHECK(info_of(100, {.pages = 64, .max_step_tokens = 64}).window_pages == 8 * (6 + 2));
  const auto little = ModelRunner::load(
      std::make_shared<RandomCheckpoint>(RandomOptions{.model_type = "mistral", .window = 100}),
      {.pages = 64, .window_pages = 3});
  REQUIRE_FALSE(little.has_value());
  CHECK(little.error().code == ErrorCode::kInvalid);
}

}  // namespace
}  // namespace tandem::runner
