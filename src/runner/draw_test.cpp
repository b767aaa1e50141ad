#include "runner/draw.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "sample/sampler.h"
#include "tensor/host.h"

namespace tandem::runner {
namespace {

namespace mx = tensor::mx;
using Row = std::vector<float>;
using Ids = std::vector<plan::TokenId>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// -1 where the host finds nothing to draw.
plan::TokenId on_host(const Row& row, const plan::Draw& draw, uint32_t position) {
  static sample::Sampler sampler;
  const Ids history(position);
  const auto token =
      sampler.draw({.logits = row, .history = history, .sampling = plan::sampling_of(draw)});
  return token ? token->id : -1;
}

Ids on_device(const std::vector<Row>& logits, const std::vector<DrawRow>& rows) {
  Row flat;
  for (const Row& row : logits) flat.insert(flat.end(), row.begin(), row.end());
  const mx::array all = tensor::from_host(
      flat, {static_cast<int>(logits.size()), static_cast<int>(logits[0].size())});
  Drawn drawn = draw(all, rows);
  mx::eval(drawn.ids, drawn.next);
  Ids ids;
  for (const uint32_t at : drawn.place) {
    ids.push_back(tensor::on_host<int32_t>(drawn.ids)[at]);
    CHECK(tensor::on_host<int32_t>(drawn.next)[at] == std::max(0, ids.back()));
  }
  return ids;
}

/// Often with ties, also between the largest.
Row random_row(std::mt19937_64& random, size_t vocab) {
  const bool has_ties = random() % 2 == 0;
  std::normal_distribution<float> normal(0, 3);
  Row row(vocab);
  for (float& logit : row) logit = has_ties ? std::round(normal(random)) : normal(random);
  for (size_t i = random() % 3; i > 0; --i) row[random() % vocab] = -kInfinity;
  if (random() % 4 == 0) row[random() % vocab] = kNan;
  return row;
}

plan::Draw random_draw(std::mt19937_64& random, size_t vocab) {
  const auto one_of = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  return {.temperature = one_of(0.0F, 0.0F, 0.3F, 0.8F, 1.0F, 2.5F),
          .top_p = one_of(1.0F, 1.0F, 0.95F, 0.5F, 0.01F, 0.0F),
          .top_k = one_of(0U, 0U, 1U, 3U, 40U, static_cast<uint32_t>(vocab)),
          .min_p = one_of(0.0F, 0.0F, 0.05F, 0.5F, 1.0F),
          .seed = random(),
          .choice = one_of(0U, 1U)};
}

TEST_CASE("device draw: greedy tokens are the host's, others too but where rounding decides") {
  std::mt19937_64 random(1);
  size_t drawn = 0, different = 0;
  for (const size_t vocab : {1U, 2U, 101U, 256U, 257U, 1500U, 30'000U}) {
    for (int round = vocab > 2000 ? 10 : 0; round < 12; ++round) {
      std::vector<Row> logits;
      for (size_t i = 0; i < 4; ++i) logits.push_back(random_row(random, vocab));
      std::vector<DrawRow> rows;
      for (uint32_t i = 0; i < 24; ++i)
        rows.push_back({.draw = random_draw(random, vocab),
                        .row = static_cast<uint32_t>(random() % 4),
                        .position = static_cast<uint32_t>(random() % 1000)});
      const Ids ids = on_device(logits, rows);
      REQUIRE(ids.size() == rows.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        const plan::TokenId expected = on_host(logits[rows[i].row], rows[i].draw, rows[i].position);
        if (rows[i].draw.temperature == 0) {
          CHECK(ids[i] == expected);
        } else {
          ++drawn;
          different += ids[i] != expected;
        }
      }
    }
  }
  CHECK(drawn > 1000);
  MESSAGE(different << " of " << drawn << " draws differ from the host's");
  CHECK(different <= 2);
}

TEST_CASE("device draw: a token depends on no other row of the batch") {
  std::mt19937_64 random(2);
  std::vector<Row> logits;
  std::vector<DrawRow> rows;
  for (uint32_t i = 0; i < 40; ++i) {
    logits.push_back(random_row(random, 700));
    rows.push_back({.draw = random_draw(random, 700), .row = i, .position = i});
  }
  const Ids together = on_device(logits, rows);
  for (uint32_t i = 0; i < 40; ++i) {
    DrawRow alone = rows[i];
    alone.row = 0;
    CHECK(on_device({logits[i]}, {alone}).front() == together[i]);
  }
}

TEST_CASE("device draw: what is no number is never drawn, and a row without any gives -1") {
  const std::vector<Row> logits = {{kNan, -kInfinity, 0.5F, kNan, 0.25F},
                                   {1, kInfinity, 2, 0, 0},
                                   {kNan, -kInfinity, kNan, -kInfinity, kNan}};
  std::vector<DrawRow> rows;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<plan::Draw> draws = {
        {},
        {.temperature = 1, .seed = seed},
        {.temperature = 1e-30F, .seed = seed},
        {.temperature = 1e30F, .top_p = 0.5F, .top_k = 9, .seed = seed}};
    for (const plan::Draw& draw : draws)
      for (uint32_t row = 0; row < 3; ++row) rows.push_back({.draw = draw, .row = row});
  }
  const Ids ids = on_device(logits, rows);
  for (size_t i = 0; i < ids.size(); ++i) {
    CAPTURE(i);
    if (rows[i].row == 0) CHECK((ids[i] == 2 || ids[i] == 4));
    if (rows[i].row == 1) CHECK(ids[i] == 1);
    if (rows[i].row == 2) CHECK(ids[i] == -1);
  }
}

/// The rules of sample/filters.h, then softmax, straight from their words.
std::map<plan::TokenId, double> distribution(const Row& row, const plan::Draw& d) {
  std::vector<plan::TokenId> order(row.size());
  for (size_t i = 0; i < row.size(); ++i) order[i] = static_cast<plan::TokenId>(i);
  const auto at = [&](plan::TokenId id) { return double{row[static_cast<size_t>(id)]}; };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return at(a) > at(b); });
  double all = 0;
  for (const plan::TokenId id : order) all += std::exp(at(id));
  std::map<plan::TokenId, double> out;
  double total = 0;
  for (const plan::TokenId id : order) {
    double likelier = 0;
    for (const plan::TokenId other : order)
      likelier += at(other) > at(id) ? std::exp(at(other)) : 0;
    if (likelier / all >= double{d.top_p}) continue;
    if (std::exp(at(id) - at(order[0])) < double{d.min_p}) continue;
    if (d.top_k > 0 && out.size() == d.top_k) continue;
    total += out[id] = std::exp(at(id) / double{d.temperature});
  }
  for (auto& [id, probability] : out) probability /= total;
  return out;
}

TEST_CASE("device draw: frequencies over many draws fit the distribution (chi-square)") {
  std::mt19937_64 random(3);
  Row row(30);
  for (float& logit : row) logit = static_cast<float>(random() % 9) / 3;  // with ties
  for (const plan::Draw& settings :
       {plan::Draw{.temperature = 1}, plan::Draw{.temperature = 0.6F, .top_p = 0.7F},
        plan::Draw{.temperature = 1.7F, .top_k = 7}, plan::Draw{.temperature = 1, .min_p = 0.31F},
        plan::Draw{.temperature = 1, .top_p = 0.9F, .top_k = 11, .min_p = 0.1F}}) {
    constexpr uint32_t kDraws = 20'000;
    std::vector<DrawRow> rows;
    for (uint32_t i = 0; i < kDraws; ++i) {
      plan::Draw draw = settings;
      draw.seed = 77;
      rows.push_back({.draw = draw, .row = 0, .position = i});
    }
    std::map<plan::TokenId, double> counts;
    for (const plan::TokenId id : on_device({row}, rows)) ++counts[id];
    const auto expected = distribution(row, settings);
    double chi = 0;
    for (const auto& [id, probability] : expected) {
      const double mean = probability * kDraws;
      chi += (counts[id] - mean) * (counts[id] - mean) / mean;
    }
    CHECK(counts.size() == expected.size());  // nothing that the filters drop
    const auto degrees = static_cast<double>(expected.size() - 1);
    CHECK(chi < degrees + 4.5 * std::sqrt(2 * degrees));
  }
}

}  // namespace
}  // namespace tandem::runner
