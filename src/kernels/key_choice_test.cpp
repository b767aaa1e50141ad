#include "kernels/key_choice.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "kernels/data_test.h"

using namespace tandem::kernels;

namespace {

/// A row of a request over a shuffled pool, of keys one by one or of blocks.
struct ChoiceScene {
  KeyChoiceArgs args;
  std::vector<float> q, weights, k;  // k [slots, dim]
  std::vector<std::byte> pool;
  std::vector<uint32_t> table, chosen;
  AttentionRow row;

  ChoiceScene(TestRandom& random, size_t context, size_t fresh, bool has_blocks) {
    args.heads = random.size(1, has_blocks ? 5 : 20);
    args.dim = random.pick<size_t>({8, 20, 32, 128});
    args.page_tokens = random.pick<size_t>({1, 8, 24, 32});
    args.kv_type = random.pick({ScalarType::kF16, ScalarType::kF32});
    args.block = has_blocks ? random.pick<size_t>({5, 8, 64, 128}) : 1;
    args.top_k = random.size(1, (context + args.block - 1) / args.block);
    args.first_blocks = has_blocks ? random.size(0, args.top_k / 2) : 0;
    args.last_blocks = has_blocks ? random.size(0, args.top_k - args.first_blocks) : 0;
    row = {.count = fresh, .start = context - fresh};
    fill_pool(random, context);
    args.q_stride = args.heads * args.dim + random.size(0, 3);
    args.weights_stride = args.heads + random.size(0, 3);
    q = random.normals(fresh * args.q_stride);
    weights = random.normals(fresh * args.weights_stride);
    args.q = q.data();
    args.weights = has_blocks ? nullptr : weights.data();
    args.k_pool = pool.data();
    row.pages = table.data();
  }

  void fill_pool(TestRandom& random, size_t context) {
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
    const size_t bytes = size_of(args.kv_type);
    pool.resize(k.size() * bytes);
    for (size_t slot = 0; slot < pages * args.page_tokens; ++slot)
      for (size_t i = 0; i < args.dim; ++i) {
        const float x = k[slot * args.dim + i];
        const uint16_t half = std::isnan(x) ? 0x7e00 : to_f16(x);
        const size_t first = slot / args.page_tokens * args.page_tokens * args.dim;
        std::memcpy(&pool[(first + i * args.page_tokens + slot % args.page_tokens) * bytes],
                    bytes == 2 ? static_cast<const void*>(&half) : &x, bytes);
      }
  }

  size_t slot_of(size_t at) const {
    return table[at / args.page_tokens] * args.page_tokens + at % args.page_tokens;
  }

  std::vector<uint32_t> run(WorkerPool& workers, std::span<const AttentionRow> rows) {
    chosen.assign(row.count * args.lists() * args.top_k, 12345);
    args.rows = rows;
    args.chosen = chosen.data();
    choose_keys(workers, args);
    return chosen;
  }

  double product(size_t token, size_t head, size_t key) const {
    double sum = 0;
    for (size_t i = 0; i < args.dim; ++i)
      sum += double{q[token * args.q_stride + head * args.dim + i]} *
             double{k[slot_of(key) * args.dim + i]};
    return sum;
  }

  double score(size_t token, size_t list, size_t key) const {
    if (args.weights == nullptr) return product(token, list, key);
    double sum = 0;
    for (size_t h = 0; h < args.heads; ++h)
      sum +=
          double{weights[token * args.weights_stride + h]} * std::max(product(token, h, key), 0.0);
    return sum;
  }

  /// Of each block that a token sees, the greatest score, or infinity where it is taken anyway.
  std::vector<double> block_scores(size_t token, size_t list) const {
    const size_t seen = row.start + token + 1;
    std::vector<double> out((seen + args.block - 1) / args.block, -INFINITY);
    for (size_t key = 0; key < seen; ++key)
      out[key / args.block] = std::max(out[key / args.block], score(token, list, key));
    for (size_t b = 0; b < out.size(); ++b)
      if (b < args.first_blocks || b + args.last_blocks >= out.size()) out[b] = INFINITY;
    return out;
  }

  /// Whether a token's list is of the best, but for scores that are nearly equal.
  bool is_best(size_t token, size_t list) const {
    const std::vector<double> scores = block_scores(token, list);
    const auto* own = chosen.data() + (token * args.lists() + list) * args.top_k;
    if (scores.size() <= args.top_k)
      return std::all_of(own, own + args.top_k, [](uint32_t x) { return x == 12345; });
    double worst_taken = INFINITY, best_left = -INFINITY;
    for (uint32_t b = 0; b < scores.size(); ++b) {
      const bool is_taken = std::binary_search(own, own + args.top_k, b);
      if (is_taken) worst_taken = std::min(worst_taken, scores[b]);
      if (!is_taken) best_left = std::max(best_left, scores[b]);
    }
    return std::adjacent_find(own, own + args.top_k, std::greater_equal<>()) == own + args.top_k &&
           own[args.top_k - 1] < scores.size() && worst_taken > best_left - 1e-3;
  }

  bool is_best() const {
    for (size_t token = 0; token < row.count; ++token)
      for (size_t list = 0; list < args.lists(); ++list)
        if (!is_best(token, list)) return false;
    return true;
  }

  /// Each token as a row of its own, the last one first.
  std::vector<AttentionRow> alone() const {
    std::vector<AttentionRow> out;
    for (size_t t = row.count; t-- > 0;) {
      out.push_back(row);
      out.back().first_token = t;
      out.back().start += t;
      out.back().count = 1;
    }
    return out;
  }
};

void check_choice(uint32_t seed, bool has_blocks, WorkerPool& one, WorkerPool& three) {
  CAPTURE(name(one.level()));
  CAPTURE(seed);
  CAPTURE(has_blocks);
  TestRandom random(seed);
  const size_t context = seed % 8 == 0 ? random.size(500, 1300) : random.size(1, 150);
  const size_t most = has_blocks ? 60 : 9;
  ChoiceScene scene(random, context, random.size(1, std::min(context, most)), has_blocks);
  const std::vector<uint32_t> together = scene.run(one, std::span(&scene.row, 1));
  REQUIRE(scene.is_best());
  REQUIRE(scene.run(three, scene.alone()) == together);
}

}  // namespace

TEST_CASE("choice of keys: the best by doubles; the same for any pieces, threads and other rows") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool one(1, level), three(3, level);
    for (uint32_t seed = 0; seed < cases(40); ++seed) check_choice(seed, false, one, three);
  }
}

TEST_CASE("choice of blocks: each head's best by doubles, its own and the first ones among them") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool one(1, level), three(3, level);
    for (uint32_t seed = 100; seed < 100 + cases(60); ++seed) check_choice(seed, true, one, three);
  }
}

TEST_CASE("choice of keys: of equal ones the earlier, and a key that is no number last") {
  WorkerPool pool(1);
  TestRandom random(1);
  ChoiceScene scene(random, 40, 1, false);
  scene.args.top_k = 3;
  std::fill(scene.weights.begin(), scene.weights.end(), 0.0F);
  CHECK(scene.run(pool, std::span(&scene.row, 1)) == std::vector<uint32_t>{0, 1, 2});
  std::fill(scene.q.begin(), scene.q.end(), NAN);
  CHECK(scene.run(pool, std::span(&scene.row, 1)) == std::vector<uint32_t>{0, 1, 2});
}

TEST_CASE("choice of blocks: of equal ones the earlier, and a token's own whatever it scores") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool pool(1, level);
    TestRandom random(2);
    ChoiceScene scene(random, 40, 1, true);
    scene.args.heads = 1;
    scene.args.block = 4;
    scene.args.top_k = 3;
    scene.args.first_blocks = 0;
    scene.args.last_blocks = 1;
    for (const float query : {0.0F, NAN}) {
      std::fill(scene.q.begin(), scene.q.end(), query);
      CHECK(scene.run(pool, std::span(&scene.row, 1)) == std::vector<uint32_t>{0, 1, 9});
    }
  }
}
