#include "kernels/expert_choice.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/data_test.h"

using namespace tandem::kernels;

namespace {

struct Chosen {
  std::vector<uint32_t> ids;
  std::vector<float> weights;
};

Chosen choose(const std::vector<float>& logits, size_t experts, size_t top_k, bool renormalizes) {
  WorkerPool pool(2);
  const size_t rows = logits.size() / experts;
  Chosen out{std::vector<uint32_t>(rows * top_k), std::vector<float>(rows * top_k)};
  choose_experts(pool, {.logits = logits.data(),
                        .rows = rows,
                        .experts = experts,
                        .top_k = top_k,
                        .routing = {.renormalizes = renormalizes},
                        .ids = out.ids.data(),
                        .weights = out.weights.data()});
  return out;
}

}  // namespace

TEST_CASE("expert choice: the most probable come first, with their share of the softmax") {
  TestRandom random(1);
  for (int round = 0; round < 30; ++round) {
    const size_t experts = random.size(1, 140), rows = random.size(1, 20);
    const size_t top_k = random.size(1, std::min<size_t>(experts, 9));
    const std::vector<float> logits = random.normals(rows * experts, 3.0f);
    const Chosen plain = choose(logits, experts, top_k, false);
    const Chosen whole = choose(logits, experts, top_k, true);
    CHECK(plain.ids == whole.ids);
    for (size_t r = 0; r < rows; ++r) {
      const float* row = logits.data() + r * experts;
      std::vector<uint32_t> order(experts);
      std::iota(order.begin(), order.end(), 0u);
      std::stable_sort(order.begin(), order.end(),
                       [&](uint32_t a, uint32_t b) { return row[a] > row[b]; });
      double all = 0, some = 0;
      for (size_t e = 0; e < experts; ++e) all += std::exp(double{row[e]});
      for (size_t k = 0; k < top_k; ++k) some += std::exp(double{row[order[k]]});
      for (size_t k = 0; k < top_k; ++k) {
        const double value = std::exp(double{row[order[k]]});
        CHECK(plain.ids[r * top_k + k] == order[k]);
        CHECK(double{plain.weights[r * top_k + k]} == doctest::Approx(value / all).epsilon(1e-5));
        CHECK(double{whole.weights[r * top_k + k]} == doctest::Approx(value / some).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("expert choice: of equally probable experts the higher ids are taken") {
  CHECK(choose({1, 2, 2, 0, 2, 1}, 6, 2, false).ids == std::vector<uint32_t>{4, 2});
  CHECK(choose({0, 0, 0, 0}, 4, 3, true).ids == std::vector<uint32_t>{3, 2, 1});
}

TEST_CASE("expert choice: ids differ and exist whatever the logits") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& logits : {std::vector<float>{nan, nan, nan, nan},
                                           {1, nan, 2, 3},
                                           {infinity, infinity, 0, -infinity}}) {
    auto ids = choose(logits, 4, 3, true).ids;
    std::sort(ids.begin(), ids.end());
    CHECK(std::unique(ids.begin(), ids.end()) == ids.end());
    CHECK(ids.back() < 4);
  }
}

TEST_CASE("expert choice: a bias moves the choice alone, and weights are scaled last") {
  WorkerPool pool(1);
  const std::vector<float> logits = {0, 1, 2, 3}, bias = {10, 0, 0, 0};
  std::vector<uint32_t> ids(2);
  std::vector<float> weights(2);
  choose_experts(pool,
                 {.logits = logits.data(),
                  .rows = 1,
                  .experts = 4,
                  .top_k = 2,
                  .routing = {.score = ExpertScore::kSigmoid, .renormalizes = true, .scale = 2},
                  .bias = bias.data(),
                  .ids = ids.data(),
                  .weights = weights.data()});
  CHECK(ids == std::vector<uint32_t>{0, 3});
  const double low = 0.5, high = 1 / (1 + std::exp(-3.0));
  CHECK(double{weights[0]} == doctest::Approx(2 * low / (low + high)));
  CHECK(double{weights[1]} == doctest::Approx(2 * high / (low + high)));
}

TEST_CASE("expert choice: experts of groups that lose count as of score 0") {
  WorkerPool pool(1);
  // Groups {0, 1}, {2, 3}, {4, 5}: the second has the best expert, the last the best two together.
  const std::vector<float> logits = {-3, -3, 3, -4, 2, 2};
  const auto choose_of = [&](const std::vector<float>& bias, uint32_t top_groups,
                             bool by_best = false, bool leaves_out = false) {
    std::vector<uint32_t> ids(3);
    std::vector<float> weights(3);
    choose_experts(pool, {.logits = logits.data(),
                          .rows = 1,
                          .experts = 6,
                          .top_k = 3,
                          .routing = {.score = ExpertScore::kSigmoid,
                                      .groups = 3,
                                      .top_groups = top_groups,
                                      .weighs_groups_by_best = by_best,
                                      .leaves_groups_out = leaves_out},
                          .bias = bias.empty() ? nullptr : bias.data(),
                          .ids = ids.data(),
                          .weights = weights.data()});
    return ids;
  };
  CHECK(choose_of({}, 3) == std::vector<uint32_t>{2, 5, 4});
  const auto of_one = choose_of({}, 1);
  CHECK(of_one[0] == 5);
  CHECK(of_one[1] == 4);
  CHECK(choose_of({}, 1, true)[0] == 2);
  // Where even the best group's are below 0, those that lost go first, or are left out.
  CHECK(choose_of({-5, -5, -5, -5, -2, -2}, 1) == std::vector<uint32_t>{3, 2, 1});
  CHECK(choose_of({-5, -5, -5, -5, -2, -2}, 1, false, true) == std::vector<uint32_t>{5, 4, 3});
}
