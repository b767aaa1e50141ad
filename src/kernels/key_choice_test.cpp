#include "kernels/key_choice.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "kernels/data_test.h"

using namespace tandem::kernels;

namespace {

/// A row of a request over a shuffled pool.
struct ChoiceScene {
  KeyChoiceArgs args;
  std::vector<float> q, weights, k;  // k [slots, dim]
  std::vector<std::byte> pool;
  std::vector<uint32_t> table, chosen;
  AttentionRow row;

  ChoiceScene(TestRandom& random, size_t context, size_t fresh) {
    args.heads = random.size(1, 20);
    args.dim = random.pick<size_t>({8, 20, 32, 128});
    args.page_tokens = random.pick<size_t>({1, 8, 24, 32});
    args.kv_type = random.pick({ScalarType::kF16, ScalarType::kF32});
    args.top_k = random.size(1, context);
    row = {.count = fresh, .start = context - fresh};
    const size_t pages = (context + args.page_tokens - 1) / args.page_tokens;
    table.resize(pages);
    std::iota(table.begin(), table.end(), 0U);
    std::reverse(table.begin(), table.end());
    k.assign(pages * args.page_tokens * args.dim, NAN);
    for (size_t at = 0; at < context; ++at)
      for (size_t i = 0; i < args.dim; ++i) {
        const float x = random.normal();
        k[slot_of(at) * args.dim + i] = args.kv_type == ScalarType::kF16 ? from_f16(to_f16(x)) : x;
      }
    for (const float x : k) {
      const uint16_t half = std::isnan(x) ? 0x7e00 : to_f16(x);
      const auto* from = args.kv_type == ScalarType::kF16
                             ? reinterpret_cast<const std::byte*>(&half)
                             : reinterpret_cast<const std::byte*>(&x);
      pool.insert(pool.end(), from, from + size_of(args.kv_type));
    }
    args.q_stride = args.heads * args.dim + random.size(0, 3);
    args.weights_stride = args.heads + random.size(0, 3);
    q = random.normals(fresh * args.q_stride);
    weights = random.normals(fresh * args.weights_stride);
    args.q = q.data();
    args.weights = weights.data();
    args.k_pool = pool.data();
    row.pages = table.data();
  }

  size_t slot_of(size_t at) const {
    return table[at / args.page_tokens] * args.page_tokens + at % args.page_tokens;
  }

  std::vector<uint32_t> run(WorkerPool& workers, std::span<const AttentionRow> rows) {
    chosen.assign(row.count * args.top_k, 12345);
    args.rows = rows;
    args.chosen = chosen.data();
    choose_keys(workers, args);
    return chosen;
  }

  double score(size_t token, size_t key) const {
    double sum = 0;
    for (size_t h = 0; h < args.heads; ++h) {
      double product = 0;
      for (size_t i = 0; i < args.dim; ++i)
        product += double{q[token * args.q_stride + h * args.dim + i]} *
                   double{k[slot_of(key) * args.dim + i]};
      sum += double{weights[token * args.weights_stride + h]} * std::max(product, 0.0);
    }
    return sum;
  }

  /// Whether the token's choice is of the best, but for scores that are nearly equal.
  bool is_best(size_t token) const {
    const size_t seen = row.start + token + 1;
    const auto* own = chosen.data() + token * args.top_k;
    if (seen <= args.top_k)
      return std::all_of(own, own + args.top_k, [](uint32_t x) { return x == 12345; });
    double worst_taken = INFINITY, best_left = -INFINITY;
    for (uint32_t key = 0; key < seen; ++key) {
      const bool is_taken = std::binary_search(own, own + args.top_k, key);
      if (is_taken) worst_taken = std::min(worst_taken, score(token, key));
      if (!is_taken) best_left = std::max(best_left, score(token, key));
    }
    return own[args.top_k - 1] < seen && worst_taken > best_left - 1e-3;
  }
};

}  // namespace

TEST_CASE("choice of keys: the best by doubles; the same for any pieces, threads and other rows") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool one(1, level), three(3, level);
    for (uint32_t seed = 0; seed < cases(40); ++seed) {
      CAPTURE(name(level));
      CAPTURE(seed);
      TestRandom random(seed);
      const size_t context = seed % 8 == 0 ? random.size(500, 1300) : random.size(1, 150);
      ChoiceScene scene(random, context, random.size(1, std::min<size_t>(context, 9)));
      const std::vector<uint32_t> together = scene.run(one, std::span(&scene.row, 1));
      for (size_t t = 0; t < scene.row.count; ++t) REQUIRE(scene.is_best(t));
      std::vector<AttentionRow> alone;
      for (size_t t = scene.row.count; t-- > 0;) {
        alone.push_back(scene.row);
        alone.back().first_token = t;
        alone.back().start += t;
        alone.back().count = 1;
      }
      REQUIRE(scene.run(three, alone) == together);
    }
  }
}

TEST_CASE("choice of keys: of equal ones the earlier, and a key that is no number last") {
  WorkerPool pool(1);
  TestRandom random(1);
  ChoiceScene scene(random, 40, 1);
  scene.args.top_k = 3;
  std::fill(scene.weights.begin(), scene.weights.end(), 0.0F);
  CHECK(scene.run(pool, std::span(&scene.row, 1)) == std::vector<uint32_t>{0, 1, 2});
  std::fill(scene.q.begin(), scene.q.end(), NAN);
  CHECK(scene.run(pool, std::span(&scene.row, 1)) == std::vector<uint32_t>{0, 1, 2});
}
