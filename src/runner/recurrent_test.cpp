// Promise 1 for layers that carry a state from token to token.
#include <doctest/doctest.h>

#include <map>

#include "model/random_checkpoint_test.h"
#include "runner/plans_test.h"

namespace tandem::runner {
namespace {

constexpr uint32_t kPageSize = 4, kPageCount = 256;

constexpr uint64_t kDelta = 12;   // seeds from here on are of qwen3_5
constexpr uint64_t kSsd = 24;     // and from here on of nemotron_h and mamba2 by turns
constexpr uint64_t kOthers = 30;  // and from here on of kimi_linear and bailing_hybrid by turns

model::RandomOptions hybrid(uint64_t seed) {
  model::RandomOptions o{.model_type = seed < kDelta ? "lfm2"
                                       : seed < kSsd ? "qwen3_5"
                                       : seed >= kOthers
                                           ? seed % 2 == 0 ? "kimi_linear" : "bailing_hybrid"
                                       : seed % 4 == 2 ? "mamba2"
                                                       : "nemotron_h",
                         .layers = 4};
  o.hidden = 96;
  o.mlp = 64;
  o.heads = seed % 2 == 0 ? 4 : 6;
  o.attends_from = static_cast<uint32_t>(seed % 3);
  o.taps = 2 + static_cast<uint32_t>(seed % 4);
  o.has_biases = seed % 2 == 1;
  o.bits = seed % 3 == 2 ? 4 : 0;
  return o;
}

std::unique_ptr<ModelRunner> load_hybrid(const model::RandomOptions& o, ModelOptions options) {
  options.page_tokens = kPageSize;
  options.pages = kPageCount;
  options.state_slots = 32;
  options.all_logits = true;
  options.overlap = false;
  auto runner = ModelRunner::load(std::make_shared<model::RandomCheckpoint>(o), options);
  TANDEM_CHECK(runner.has_value(), "{}", runner.error().message);
  TANDEM_CHECK((*runner)->reset(0).has_value(), "reset failed");
  return std::move(runner).value();
}

/// Histories and their logits of every token, as a runner computes them in steps.
struct HybridRun {
  ModelRunner& runner;
  std::vector<History> histories = {};
  std::map<plan::RequestId, Logits> logits = {};
  uint64_t sequence = 0;
  Pages pool = Pages(kPageCount, kPageSize, 3);

  History& add(const Tokens& tokens) {
    const auto at = static_cast<uint32_t>(histories.size());
    histories.push_back({.id = at + 1, .tokens = tokens, .slots = {2 * at, 2 * at + 1}});
    return histories.back();
  }

  plan::Row next(History& history, size_t count) {
    plan::Row row = history.next(count, pool, true);
    history.carry(row);
    return row;
  }

  void step(const std::vector<plan::Row>& rows) {
    TANDEM_CHECK(runner.issue({.sequence = sequence++, .rows = rows}).has_value(), "refused");
    const auto result = runner.complete();
    TANDEM_CHECK(result.has_value(), "{}", result.error().message);
    auto from = result->logits.begin();
    for (const plan::Row& row : rows) {
      const auto end = from + static_cast<ptrdiff_t>(row.tokens.size() * runner.info().vocab);
      logits[row.request].insert(logits[row.request].end(), from, end);
      from = end;
    }
  }
};

/// The whole history in one step of a runner that has done nothing else.
Logits whole_and_alone(const model::RandomOptions& o, const ModelOptions& options, Tokens tokens) {
  const auto runner = load_hybrid(o, options);
  HybridRun run{*runner};
  History& history = run.add(tokens);
  run.step({run.next(history, tokens.size())});
  return run.logits.at(1);
}

TEST_CASE("hybrid models: chunks in any batch have the bits of the whole prompt alone") {
  for (uint64_t seed = 0; seed < kOthers + 6; ++seed) {
    CAPTURE(seed);
    const auto o = hybrid(seed);
    std::mt19937_64 random(seed);
    const ModelOptions options = {.threads = 1 + static_cast<uint32_t>(seed % 2)};
    const auto runner = load_hybrid(o, options);
    HybridRun run{*runner};
    for (const size_t length : {80, 21, 9, 1})
      run.add(random_tokens(length, o.vocab, seed * 10 + length));
    for (bool is_over = false; !is_over;) {
      std::vector<plan::Row> rows;
      for (History& history : run.histories) {
        const size_t left = history.tokens.size() - history.done;
        const size_t count = random() % 3 == 0 ? 1 : random() % 25;  // shapes come again: replayed
        if (left > 0 && count > 0) rows.push_back(run.next(history, count));
      }
      if (!rows.empty()) run.step(rows);
      is_over = std::ranges::all_of(run.histories,
                                    [](const History& h) { return h.done == h.tokens.size(); });
    }
    for (const History& history : run.histories)
      CHECK(run.logits.at(history.id) == whole_and_alone(o, options, history.tokens));
  }
}

TEST_CASE("hybrid models: token by token, recorded once and replayed, as in one step") {
  for (const uint64_t seed : {uint64_t{4}, kDelta + 4, kSsd + 4, kOthers, kOthers + 1}) {
    const auto o = hybrid(seed);
    const Tokens tokens = random_tokens(70, o.vocab, 1);
    const auto runner = load_hybrid(o, {});
    HybridRun run{*runner};
    History& history = run.add(tokens);
    for (size_t i = 0; i < tokens.size(); ++i) run.step({run.next(history, 1)});
    CHECK(run.logits.at(1) == whole_and_alone(o, {}, tokens));
  }
}

void check_saved_inside(tensor::Path path, uint64_t seed) {
  CAPTURE((path == tensor::Path::kFast));
  const auto o = hybrid(seed);
  Tokens tokens = random_tokens(40, o.vocab, 2);
  const ModelOptions options = {.path = path, .device = tensor::mx::Device::cpu};
  const auto runner = load_hybrid(o, options);
  HybridRun run{*runner};
  History first = run.add(tokens);
  plan::Row row = run.next(first, tokens.size());
  row.saves.insert(row.saves.begin(), {.tokens = 24, .slot = 20});
  row.saves.insert(row.saves.begin(), {.tokens = 1, .slot = 21});
  run.step({row});
  constexpr size_t kKept = 24;
  for (size_t i = kKept; i < tokens.size(); ++i) tokens[i] = static_cast<plan::TokenId>(i);
  History second{.id = 7, .tokens = tokens, .done = kKept, .slots = {20, 9}};
  second.pages.assign(first.pages.begin(), first.pages.begin() + kKept / kPageSize);
  run.step({run.next(second, 3)});
  run.step({run.next(second, tokens.size())});
  Logits whole = whole_and_alone(o, options, tokens);
  whole.erase(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(kKept * o.vocab));
  if (path == tensor::Path::kFast)
    CHECK(run.logits.at(7) == whole);
  else
    CHECK(largest_difference(run.logits.at(7), whole) <= 1e-4F);
}

TEST_CASE("hybrid models: a state saved inside a row is one to go on from") {
  for (const uint64_t seed : {uint64_t{1}, kDelta + 1, kSsd + 1, kSsd + 2, kOthers, kOthers + 1})
    for (const tensor::Path path : {tensor::Path::kFast, tensor::Path::kPlain})
      check_saved_inside(path, seed);
}

TEST_CASE("hybrid models: both paths agree, in steps and in batches") {
  std::vector<uint64_t> seeds = {kSsd,        kSsd + 1,    kSsd + 2,   kOthers,
                                 kOthers + 1, kOthers + 2, kOthers + 5};
  for (uint64_t seed = kDelta - 6; seed < kDelta + 6; ++seed) seeds.push_back(seed);
  for (const uint64_t seed : seeds) {
    CAPTURE(seed);
    const auto o = hybrid(seed);
    std::vector<Logits> seen;
    for (const tensor::Path path : {tensor::Path::kFast, tensor::Path::kPlain}) {
      const auto runner = load_hybrid(o, {.path = path, .device = tensor::mx::Device::cpu});
      HybridRun run{*runner};
      History a = run.add(random_tokens(15, o.vocab, 1)), b = run.add(random_tokens(9, o.vocab, 2));
      run.step({run.next(a, 7), run.next(b, 4)});
      run.step({run.next(b, 1), run.next(a, 1)});
      run.step({run.next(a, 7), run.next(b, 4)});
      seen.push_back(run.logits.at(1));
      seen.back().insert(seen.back().end(), run.logits.at(2).begin(), run.logits.at(2).end());
    }
    CHECK(largest_difference(seen[0], seen[1]) <= (o.bits == 0 ? 2e-4F : 5e-4F));
  }
}

TEST_CASE("lfm2: convolutions of either layout are the same") {
  auto o = hybrid(3);
  const Tokens tokens = random_tokens(12, o.vocab, 3);
  const Logits logits = whole_and_alone(o, {}, tokens);
  o.has_hf_layout = true;
  CHECK(whole_and_alone(o, {}, tokens) == logits);
}

}  // namespace
}  // namespace tandem::runner
