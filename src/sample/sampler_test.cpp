#include "sample/sampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>

#include "sample/row_math.h"

using namespace tandem;
using namespace tandem::sample;
using Ids = std::vector<gen::TokenId>;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

nlohmann::json vectors() {
  std::ifstream in(TANDEM_SOURCE_DIR "/tests/vectors/golden_sampler.json");
  REQUIRE(in);
  return nlohmann::json::parse(in);
}

/// The largest value; NaN never counts. -infinity for a row without a number above it.
float row_max(std::span<const float> row) {
  float max = kNoLogit;
  for (const float x : row) max = x > max ? x : max;
  return max;
}

Ids kept(const std::vector<float>& row, const gen::Sampling& sampling, bool xtc = false) {
  Filters filters;
  RowMaxima maxima;
  maxima.read(row);
  Ids ids;
  for (const auto& at : filters.keep(row, maxima, sampling, xtc)) ids.push_back(at.id);
  return ids;
}

/// The same filters the slow way: sorted probabilities in double precision.
Ids kept_by_sorting(const std::vector<float>& row, const gen::Sampling& sampling, bool xtc) {
  const double max = double{*std::max_element(row.begin(), row.end())};
  Ids ids;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] > -kInfinity) ids.push_back(static_cast<int>(i));
  }
  const auto logit = [&](int id) { return double{row[static_cast<size_t>(id)]}; };
  const auto weight = [&](int id) { return std::exp(logit(id) - max); };
  std::stable_sort(ids.begin(), ids.end(), [&](int a, int b) { return logit(a) > logit(b); });
  const auto mass = [&](const Ids& of) {
    return std::accumulate(of.begin(), of.end(), 0.0,
                           [&](double s, int id) { return s + weight(id); });
  };
  if (sampling.top_p > 0 && sampling.top_p < 1) {
    const double room = mass(ids) * double{sampling.top_p};
    double above = 0;
    size_t end = 0;
    while (end < ids.size() && above < room) above += weight(ids[end++]);
    while (end < ids.size() && logit(ids[end]) == logit(ids[end - 1])) ++end;
    ids.resize(end);
  }
  if (sampling.min_p > 0) {
    std::erase_if(ids, [&](int id) {
      return logit(id) < double{static_cast<float>(max) + std::log(sampling.min_p)};
    });
  }
  if (xtc) {
    const double total = mass(ids);
    double least = 1e30;
    for (int id : ids) {
      if (weight(id) / total > double{sampling.xtc_threshold}) least = std::min(least, logit(id));
    }
    std::erase_if(ids, [&](int id) {
      return logit(id) > least &&
             std::count(sampling.xtc_exempt.begin(), sampling.xtc_exempt.end(), id) == 0;
    });
  }
  if (sampling.top_k > 0 && sampling.top_k < ids.size()) ids.resize(sampling.top_k);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<float> random_row(std::mt19937& random, size_t vocab) {
  const float scale = std::array{0.0F, 0.1F, 1.0F, 4.0F, 20.0F}[random() % 5];
  std::normal_distribution<float> normal;
  std::vector<float> row(vocab);
  const bool ties = random() % 3 == 0;
  for (float& logit : row) {
    logit = normal(random) * scale;
    if (ties) logit = std::round(logit);
    if (random() % 50 == 0) logit = -kInfinity;
  }
  row[random() % vocab] = 0.5F;
  return row;
}

gen::Token draw(const std::vector<float>& row,
                const gen::Sampling& sampling,
                Ids history = {1},
                std::optional<uint32_t> logprobs = {},
                Ids banned = {}) {
  Sampler sampler;
  const auto token = sampler.draw({.logits = row,
                                   .history = history,
                                   .sampling = sampling,
                                   .banned = banned,
                                   .logprobs = logprobs});
  REQUIRE(token);
  return *token;
}

/// Chi-square of `draws` tokens against the given probabilities, over their degrees of freedom.
void check_distribution(const std::vector<float>& row,
                        gen::Sampling sampling,
                        const std::vector<double>& expected) {
  constexpr int kDraws = 20000;
  std::vector<int> counts(row.size());
  Sampler sampler;
  Ids history(3, 0);
  for (int i = 0; i < kDraws; ++i) {
    sampling.seed = static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15ULL;
    const auto token = sampler.draw({.logits = row, .history = history, .sampling = sampling});
    REQUIRE(token);
    ++counts[static_cast<size_t>(token->id)];
  }
  double chi = 0;
  int freedom = -1;
  for (size_t i = 0; i < row.size(); ++i) {
    if (expected[i] == 0) {
      CHECK(counts[i] == 0);
      continue;
    }
    const double mean = expected[i] * kDraws;
    chi += (counts[i] - mean) * (counts[i] - mean) / mean;
    ++freedom;
  }
  CAPTURE(chi);
  CAPTURE(freedom);
  CHECK(chi < freedom + 4.5 * std::sqrt(2.0 * freedom));
}

std::vector<double> softmax(const std::vector<float>& row, double temperature, const Ids& ids) {
  std::vector<double> result(row.size());
  double sum = 0;
  for (int id : ids) sum += std::exp(double{row[static_cast<size_t>(id)]} / temperature);
  for (int id : ids) {
    result[static_cast<size_t>(id)] =
        std::exp(double{row[static_cast<size_t>(id)]} / temperature) / sum;
  }
  return result;
}

}  // namespace

TEST_CASE("sampler: filters keep what the reference vectors keep") {
  const auto golden = vectors();
  const auto row = golden["logits"].get<std::vector<float>>();
  for (const auto& [p, ids] : golden["top_p"].items()) {
    CAPTURE(p);
    CHECK(kept(row, {.top_p = std::stof(p)}) == ids.get<Ids>());
  }
  for (const auto& [p, ids] : golden["min_p"].items()) {
    CAPTURE(p);
    CHECK(kept(row, {.min_p = std::stof(p)}) == ids.get<Ids>());
  }
  for (const auto& [k, ids] : golden["top_k"].items()) {
    CAPTURE(k);
    CHECK(kept(row, {.top_k = static_cast<uint32_t>(std::stoi(k))}) == ids.get<Ids>());
  }
  for (const auto& [threshold, ids] : golden["xtc_always"].items()) {
    CAPTURE(threshold);
    CHECK(kept(row, {.xtc_threshold = std::stof(threshold), .xtc_exempt = {2, 3}}, true) ==
          ids.get<Ids>());
  }
}

TEST_CASE("sampler: bias and penalties change logits as the reference vectors do") {
  const auto golden = vectors();
  const auto history = golden["penalty_context"].get<Ids>();
  for (const auto& [text, expected] : golden["penalties"].items()) {
    CAPTURE(text);
    const auto settings = nlohmann::json::parse(text);
    // The reference's default context is 20 tokens, longer than this history.
    gen::Sampling sampling{.repetition = {settings.value("repetition_penalty", 0.0F),
                                          settings.value("repetition_context_size", 20U)},
                           .presence = {settings.value("presence_penalty", 0.0F), 20},
                           .frequency = {settings.value("frequency_penalty", 0.0F),
                                         settings.value("frequency_context_size", 20U)}};
    if (settings.contains("logit_bias")) {
      for (const auto& [id, bias] : settings["logit_bias"].items()) {
        sampling.logit_bias.push_back({std::stoi(id), bias.get<float>()});
      }
    }
    CHECK(has_penalties(sampling));
    auto row = golden["logits"].get<std::vector<float>>();
    PenaltyMemory memory;
    apply_penalties(row, sampling, history, memory);
    for (size_t i = 0; i < row.size(); ++i) {
      CHECK(row[i] == doctest::Approx(expected[i].get<double>()).epsilon(1e-6));
    }
  }
}

TEST_CASE("sampler: logprobs are the reference's, the drawn token's first and the top sorted") {
  const auto golden = vectors();
  const auto row = golden["logits"].get<std::vector<float>>();
  const auto expected = golden["logprobs"].get<std::vector<float>>();
  const gen::Token token = draw(row, {.temperature = 1.4F, .seed = 3}, {1, 2}, 5);
  CHECK(token.logprob == doctest::Approx(expected[static_cast<size_t>(token.id)]));
  REQUIRE(token.top.size() == 5);
  CHECK(token.top[0].id == 9);
  for (size_t i = 0; i < 5; ++i) {
    CHECK(token.top[i].logprob == doctest::Approx(expected[static_cast<size_t>(token.top[i].id)]));
    if (i > 0) CHECK(token.top[i - 1].logprob >= token.top[i].logprob);
  }
  CHECK(draw(row, {}, {1}, 0).top.empty());
  CHECK(draw(row, {}, {1}, 100).top.size() == row.size());
  CHECK(draw(row, {}).logprob == 0);
}

TEST_CASE("sampler: filters agree with sorting the whole row") {
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    const size_t vocab = round % 20 == 0 ? 3000 : 1 + random() % 200;
    const auto row = random_row(random, vocab);
    const gen::Sampling sampling{
        .top_p = std::array{0.0F, 1.0F, 0.05F, 0.5F, 0.9F, 0.999F}[random() % 6],
        .top_k = std::array{0U, 1U, 3U, 40U, 1000000U}[random() % 5],
        .min_p = std::array{0.0F, 0.02F, 0.3F, 1.0F}[random() % 4],
        .xtc_threshold = std::array{0.0F, 0.01F, 0.1F, 0.5F, 0.9F}[random() % 5],
        .xtc_exempt = {0, 5}};
    const bool xtc = random() % 2 == 0;
    CAPTURE(round);
    CHECK(kept(row, sampling, xtc) == kept_by_sorting(row, sampling, xtc));
  }
}

TEST_CASE("sampler: draws follow the tempered distribution over the survivors") {
  const auto row = vectors()["logits"].get<std::vector<float>>();
  Ids all(row.size());
  std::iota(all.begin(), all.end(), 0);
  check_distribution(row, {.temperature = 1}, softmax(row, 1, all));
  check_distribution(row, {.temperature = 2}, softmax(row, 2, all));
  check_distribution(row, {.temperature = 0.5F}, softmax(row, 0.5, all));
  gen::Sampling some{.temperature = 1.5F, .top_p = 0.95F, .top_k = 8, .min_p = 0.02F};
  check_distribution(row, some, softmax(row, 1.5, kept(row, some)));
  some = {.temperature = 1, .xtc_probability = 0.3F, .xtc_threshold = 0.05F};
  const auto with = softmax(row, 1, kept(row, some, true)), without = softmax(row, 1, all);
  std::vector<double> mixed(row.size());
  for (size_t i = 0; i < row.size(); ++i) mixed[i] = 0.3 * with[i] + 0.7 * without[i];
  check_distribution(row, some, mixed);
}

TEST_CASE("sampler: draws over a vocabulary of many blocks reach every part of it evenly") {
  constexpr size_t kVocab = 5000;
  const std::vector<float> row(kVocab, 1.5F);
  std::array<int, 10> parts{};
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    const auto id = draw(row, {.temperature = 1, .seed = seed}).id;
    ++parts[static_cast<size_t>(id) / (kVocab / 10)];
  }
  for (const int part : parts) CHECK(std::abs(part - 500) < 110);
}

TEST_CASE("sampler: a draw depends on seed, choice and position alone") {
  std::mt19937 random(4);
  const auto row = random_row(random, 400);
  std::vector<float> other = random_row(random, 300);
  gen::Sampling sampling{.temperature = 3, .top_p = 0.99F, .seed = 77};
  Sampler busy;
  std::set<gen::TokenId> seen;
  for (int length = 1; length < 60; ++length) {
    Ids history(static_cast<size_t>(length), 2), differing(static_cast<size_t>(length), 3);
    const auto token = draw(row, sampling, history);
    REQUIRE(busy.draw({.logits = other, .history = differing, .sampling = sampling}));
    const auto again = busy.draw({.logits = row, .history = differing, .sampling = sampling});
    CHECK(*again == token);
    seen.insert(token.id);
  }
  CHECK(seen.size() > 10);
  int same_seed = 0, same_choice = 0;
  for (uint32_t i = 1; i <= 50; ++i) {
    const auto base = draw(row, sampling).id;
    gen::Sampling seed = sampling, choice = sampling;
    seed.seed += uint64_t{i} << 32;
    choice.choice = i;
    same_seed += draw(row, seed).id == base;
    same_choice += draw(row, choice).id == base;
  }
  CHECK(same_seed < 15);
  CHECK(same_choice < 15);
}

TEST_CASE("sampler: temperature 0 takes the lowest id among the largest, filters or not") {
  const std::vector<float> row{1, 5, kNan, 5, -kInfinity, 2};
  CHECK(draw(row, {}).id == 1);
  CHECK(draw(row, {.top_k = 1, .xtc_probability = 1, .xtc_threshold = 0.01F, .seed = 9}).id == 1);
}

TEST_CASE(
    "sampler: values that are not numbers are never drawn and a row without any is an error") {
  const std::vector<float> row{kNan, -kInfinity, 0.5F, kNan, 0.25F};
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (const gen::Sampling& sampling :
         {gen::Sampling{.temperature = 1, .seed = seed},
          gen::Sampling{.temperature = 1e-30F, .seed = seed},
          gen::Sampling{.temperature = 1e30F, .top_p = 0.5F, .top_k = 9, .seed = seed},
          gen::Sampling{
              .temperature = 1, .xtc_probability = 1, .xtc_threshold = 0.9F, .seed = seed}}) {
      const auto id = draw(row, sampling, {1}, 5).id;
      CHECK((id == 2 || id == 4));
    }
  }
  CHECK(draw(row, {}, {1}, 5).top.size() == 2);
  CHECK(draw({1, kInfinity, 2}, {.temperature = 1}).id == 1);
  CHECK(draw({1, kInfinity, 2}, {.temperature = 1, .top_p = 0.9F, .top_k = 2}).id == 1);
  Sampler sampler;
  const std::vector<float> nothing{kNan, -kInfinity};
  CHECK(!sampler.draw({.logits = nothing, .history = {}, .sampling = {}}));
}

TEST_CASE("sampler: a row without a usable logit is an error that says why") {
  const gen::Sampling greedy, random{.temperature = 1};
  const float nothing = -std::numeric_limits<float>::infinity();
  const auto refusal = [](const std::vector<float>& row, const gen::Sampling& sampling,
                          const Ids& banned) {
    Sampler sampler;
    const Ids history{1};
    const auto token =
        sampler.draw({.logits = row, .history = history, .sampling = sampling, .banned = banned});
    REQUIRE_FALSE(token);
    CHECK(token.error().code == ErrorCode::kInternal);
    return token.error().message;
  };
  for (const gen::Sampling& sampling : {greedy, random}) {
    CHECK(refusal({kNan, kNan, kNan}, sampling, {}) == kNoFiniteLogit);
    CHECK(refusal({kNan, nothing}, sampling, {0}) == kNoFiniteLogit);
    CHECK(refusal({1, kNan, 2}, sampling, {0, 2}).find("every token is banned") == 9);
  }
}

TEST_CASE("sampler: banned ids are not drawn and logprobs are taken without them") {
  const std::vector<float> row{0, 10, 1, 9};
  const Ids banned{1, 3, 99, -1};
  CHECK(draw(row, {}, {0}, {}, banned).id == 2);
  const auto token = draw(row, {}, {0}, 4, banned);
  CHECK(token.logprob == doctest::Approx(-std::log(1 + std::exp(-1.0))));
  CHECK(token.top.size() == 2);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto id = draw(row, {.temperature = 5, .seed = seed}, {0}, {}, banned).id;
    CHECK((id == 0 || id == 2));
  }
}

TEST_CASE("sampler: penalties see prompt and answer through their own context sizes") {
  const std::vector<float> row(8, 1.0F);
  PenaltyMemory memory;
  auto changed = row;
  apply_penalties(changed, {.presence = {1, 2}, .frequency = {0.5F, 0}}, Ids{3, 4, 4, 99, -2, 5},
                  memory);
  CHECK(changed == std::vector<float>{1, 1, 1, 0.5F, 0, -0.5F, 1, 1});
  changed = row;
  apply_penalties(changed, {.repetition = {1, 0}}, Ids{3}, memory);
  CHECK(changed == row);
}

TEST_CASE("sampler: penalties that remember a growing history give what counting it anew gives") {
  std::mt19937 random(5);
  for (uint32_t round = 0; round < 60; ++round) {
    CAPTURE(round);
    const auto context = [&] { return random() % 3 == 0 ? 0U : 1 + random() % 12; };
    const gen::Sampling sampling{.repetition = {1.3F, static_cast<uint32_t>(context())},
                                 .presence = {0.5F, static_cast<uint32_t>(context())},
                                 .frequency = {0.25F, static_cast<uint32_t>(context())}};
    PenaltyMemory memory;
    Ids history;
    while (history.size() < 80) {
      const bool is_shorter = random() % 12 == 0 && !history.empty();  // not a history that grew
      if (is_shorter) history.resize(random() % history.size());
      const size_t more = is_shorter ? 0 : 1 + random() % 3;
      for (size_t i = 0; i < more; ++i) {
        history.push_back(static_cast<gen::TokenId>(random() % 20) - 1);  // some are no ids
      }
      auto row = random_row(random, 16);
      auto expected = row;
      PenaltyMemory fresh;
      apply_penalties(row, sampling, history, memory);
      apply_penalties(expected, sampling, history, fresh);
      CHECK(row == expected);
    }
  }
}

TEST_CASE("row math: exp sums match the library's to single precision, on any length") {
  std::mt19937 random(2);
  for (size_t length : {1U, 3U, 4U, 7U, 511U, 512U, 513U, 5000U}) {
    auto row = random_row(random, length);
    if (length > 3) row[2] = kNan;
    const float max = row_max(row);
    std::vector<float> weights(length, -1);
    double expected = 0;
    const double sum = exp_sum(row, max, 0.75F, weights.data());
    for (size_t i = 0; i < length; ++i) {
      const double term = row[i] > -kInfinity ? std::exp((double{row[i]} - double{max}) * 0.75) : 0;
      CHECK(std::abs(double{weights[i]} - term) <= 1e-5 * term + 1e-37);
      expected += term;
    }
    CHECK(sum == doctest::Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE("row maxima: the largest values of a row are found through its groups") {
  std::mt19937 random(5);
  for (size_t length : {1U, 31U, 32U, 33U, 100U, 5000U}) {
    auto row = random_row(random, length);
    if (length > 40) row[1] = kNan, row[40] = kInfinity;
    RowMaxima maxima;
    maxima.read(row);
    CHECK(maxima.max() == row_max(row));
    CHECK(maxima.find(row, maxima.max()) ==
          static_cast<size_t>(std::find(row.begin(), row.end(), maxima.max()) - row.begin()));
    CHECK(maxima.find(row, std::nextafter(maxima.max(), kInfinity)) ==
          (maxima.max() < kInfinity ? length : 40));
    for (const size_t count : {size_t{1}, size_t{3}, length}) {
      const float floor = maxima.floor_of(count);
      const auto above = std::count_if(row.begin(), row.end(), [&](float x) { return x >= floor; });
      const auto numbers =
          std::count_if(row.begin(), row.end(), [](float x) { return !std::isnan(x); });
      CHECK(static_cast<size_t>(above) >= std::min(count, static_cast<size_t>(numbers)));
    }
  }
  RowMaxima none;
  none.read(std::vector<float>{kNan, -kInfinity});
  CHECK(none.max() == -kInfinity);
}

TEST_CASE("filters: a large vocabulary keeps what sorting all of it would") {
  std::mt19937 random(6);
  for (const float spread : {0.5F, 3.0F, 8.0F}) {
    auto row = random_row(random, 20000);
    for (float& x : row) x *= spread;
    for (const float top_p : {0.1F, 0.5F, 0.95F, 0.9995F}) {
      gen::Sampling sampling;
      sampling.top_p = top_p;
      CHECK(kept(row, sampling) == kept_by_sorting(row, sampling, false));
    }
    for (const uint32_t top_k : {1U, 40U, 600U, 700U, 19999U}) {
      gen::Sampling sampling;
      sampling.top_k = top_k;
      CHECK(kept(row, sampling) == kept_by_sorting(row, sampling, false));
    }
  }
}
