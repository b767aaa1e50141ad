// Attention to chosen blocks of keys: both paths, however rows are cut, against doubles.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tensor/attention.h"
#include "tensor/device.h"
#include "tensor/evaluator.h"
#include "tensor/host.h"

namespace tandem::tensor {
namespace {

constexpr uint32_t kTokens = 45, kBlockPage = 4, kBlockDim = 8;

using Numbers = std::vector<float>;

/// A prompt's projections, and which KV head each query head reads.
struct BlockScene {
  AttentionShape shape;
  KeyChoiceShape choice = {
      .dim = 12, .block = 8, .top_k = 3, .first_blocks = 1, .last_blocks = 1, .rope = {}};
  Numbers q, k, v, index_q, index_k;

  explicit BlockScene(std::vector<uint32_t> kv_of_head) {
    std::mt19937 random(5);
    shape = {.heads = static_cast<uint32_t>(kv_of_head.size()),
             .kv_heads = 1 + *std::ranges::max_element(kv_of_head),
             .head_dim = kBlockDim,
             .kv_of_head = kv_of_head,
             .scale = 0.3F,
             .rope = {}};
    choice.heads = shape.kv_heads;
    choice.rope = std::make_shared<const Rope>(make_rope({.dims = 4, .base = 100}));
    shape.rope = choice.rope;
    const auto draw = [&](uint32_t width) {
      std::normal_distribution<float> normal;
      Numbers out(size_t{kTokens} * width);
      for (float& x : out) x = normal(random);
      return out;
    };
    q = draw(shape.heads * kBlockDim);
    k = draw(shape.kv_heads * kBlockDim);
    v = draw(shape.kv_heads * kBlockDim);
    index_q = draw(choice.heads * choice.dim);
    index_k = draw(choice.dim);
  }
};

/// Rows [begin, end) of a matrix.
array rows_of(const Numbers& x, uint32_t begin, uint32_t end) {
  const size_t width = x.size() / kTokens;
  const Numbers some(x.begin() + static_cast<std::ptrdiff_t>(begin * width),
                     x.begin() + static_cast<std::ptrdiff_t>(end * width));
  return from_host(some, {static_cast<int>(end - begin), static_cast<int>(width)});
}

/// What the tokens read, in steps that end at these tokens. With `reuse` a step that begins at
/// reuse->from or later has a row that reuses choices.
Numbers run_blocks(Path path,
                   const BlockScene& scene,
                   const std::vector<uint32_t>& ends,
                   std::optional<IndexReuse> reuse = {}) {
  use_device(mx::Device::cpu);
  Context context;
  context.path = path;
  if (context.is_fast()) context.workers = std::make_shared<kernels::WorkerPool>(2);
  const PoolShape room = {.pages = 16,
                          .page_tokens = kBlockPage,
                          .kv_heads = scene.shape.kv_heads,
                          .head_dim = kBlockDim};
  Pool pool = make_pool(room, mx::float32, path);
  Pool index = make_pool({.pages = 16,
                          .page_tokens = kBlockPage,
                          .kv_heads = 1,
                          .head_dim = scene.choice.dim,
                          .has_values = false},
                         mx::float32, path);
  std::vector<uint32_t> pages(12);
  std::iota(pages.rbegin(), pages.rend(), 2U);
  Numbers out;
  KeptChoices kept;
  uint32_t begin = 0;
  for (const uint32_t end : ends) {
    const bool reuses = reuse && begin >= reuse->from;
    const Step step({{.start = begin,
                      .tokens = std::vector<int32_t>(end - begin),
                      .pages = pages,
                      .reuse = reuses ? reuse : std::nullopt}},
                    kBlockPage);
    const auto rows = [&](const Numbers& x) { return rows_of(x, begin, end); };
    const ChosenKeys chosen =
        choose_keys(index, {.q = rows(scene.index_q), .k = rows(scene.index_k)}, scene.choice, step,
                    context, &kept);
    array read = attend(pool, {.q = rows(scene.q), .k = rows(scene.k), .v = rows(scene.v)},
                        scene.shape, step, context, &chosen);
    if (context.is_fast()) {
      run_graph(read);
      run_graph(pool.order);
    } else {
      read = mx::contiguous(read);
      mx::eval({read, pool.order, index.order});
    }
    out.insert(out.end(), on_host<float>(read), on_host<float>(read) + read.size());
    begin = end;
  }
  return out;
}

/// The same in doubles, all tokens at once.
class BlockOracle {
 public:
  explicit BlockOracle(const BlockScene& scene, std::optional<IndexReuse> reuse = {}) : s_(scene) {
    choosers_ = choosers(reuse);
    for (auto* x : {&s_.q, &s_.k}) rotate_all(*x, kBlockDim);
    for (auto* x : {&s_.index_q, &s_.index_k}) rotate_all(*x, s_.choice.dim);
  }

  Numbers run() const {
    Numbers out;
    for (uint32_t t = 0; t < kTokens; ++t)
      for (uint32_t h = 0; h < s_.shape.heads; ++h) {
        const auto read = attend_head(t, h);
        out.insert(out.end(), read.begin(), read.end());
      }
    return out;
  }

 private:
  /// The token whose choice each takes, one after the other: the last one's while it is young
  /// enough and of the same block.
  std::vector<uint32_t> choosers(std::optional<IndexReuse> reuse) const {
    std::vector<uint32_t> out;
    for (uint32_t t = 0; t < kTokens; ++t) {
      const bool goes_on =
          reuse && t > reuse->from && t % s_.choice.block != 0 && t - out.back() <= reuse->most_age;
      out.push_back(goes_on ? out.back() : t);
    }
    return out;
  }

  void rotate_all(Numbers& x, uint32_t dim) const {
    const Rope& rope = *s_.choice.rope;
    const size_t pairs = rope.inverse_frequencies.size(), heads = x.size() / kTokens / dim;
    for (size_t t = 0; t < kTokens; ++t)
      for (size_t h = 0; h < heads; ++h)
        for (size_t i = 0; i < pairs; ++i) {
          float* head = &x[(t * heads + h) * dim];
          const double angle = double{rope.inverse_frequencies[i]} * static_cast<double>(t);
          const double a = double{head[i]}, b = double{head[i + pairs]};
          head[i] = static_cast<float>(a * std::cos(angle) - b * std::sin(angle));
          head[i + pairs] = static_cast<float>(b * std::cos(angle) + a * std::sin(angle));
        }
  }

  static double product(const float* a, const float* b, uint32_t dim) {
    double sum = 0;
    for (uint32_t i = 0; i < dim; ++i) sum += double{a[i]} * double{b[i]};
    return sum;
  }

  /// Blocks from the best on.
  std::vector<uint32_t> best(uint32_t t, uint32_t list) const {
    const KeyChoiceShape& c = s_.choice;
    std::vector<double> scores(t / c.block + 1, -INFINITY);
    for (uint32_t key = 0; key <= t; ++key)
      scores[key / c.block] = std::max(
          scores[key / c.block],
          product(&s_.index_q[(t * c.heads + list) * c.dim], &s_.index_k[key * c.dim], c.dim));
    scores.front() = scores.back() = INFINITY;
    std::vector<uint32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
    order.resize(std::min<size_t>(order.size(), c.top_k));
    return order;
  }

  Numbers attend_head(uint32_t t, uint32_t h) const {
    const uint32_t kv = s_.shape.kv_of_head[h], kv_heads = s_.shape.kv_heads;
    const auto blocks = best(choosers_[t], kv);
    std::vector<double> sum(kBlockDim);
    double total = 0;
    for (uint32_t key = 0; key <= t; ++key) {
      if (std::ranges::find(blocks, key / s_.choice.block) == blocks.end()) continue;
      const double weight = std::exp(double{s_.shape.scale} *
                                     product(&s_.q[(t * s_.shape.heads + h) * kBlockDim],
                                             &s_.k[(key * kv_heads + kv) * kBlockDim], kBlockDim));
      total += weight;
      for (uint32_t i = 0; i < kBlockDim; ++i)
        sum[i] += weight * double{s_.v[(key * kv_heads + kv) * kBlockDim + i]};
    }
    Numbers out;
    for (const double x : sum) out.push_back(static_cast<float>(x / total));
    return out;
  }

  BlockScene s_;
  std::vector<uint32_t> choosers_;
};

void check_near_blocks(const Numbers& a, const Numbers& b) {
  REQUIRE(a.size() == b.size());
  float most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(a[i] - b[i]));
  CHECK(most <= 2e-5F);
}

TEST_CASE(
    "blocks: heads read those that their KV head's list has, on both paths and in any steps") {
  const std::vector<std::vector<uint32_t>> maps = {{0, 0, 1, 1, 2, 2}, {0, 0, 0, 1}, {0, 0}};
  for (const auto& kv_of_head : maps) {
    CAPTURE(kv_of_head.size());
    const BlockScene scene(kv_of_head);
    const Numbers want = BlockOracle(scene).run();
    const Numbers whole = run_blocks(Path::kFast, scene, {kTokens});
    check_near_blocks(whole, want);
    check_near_blocks(run_blocks(Path::kPlain, scene, {kTokens}), want);
    const std::vector<uint32_t> cuts = {5, 23, 24, 25, 40, 41, kTokens};
    CHECK(run_blocks(Path::kFast, scene, cuts) == whole);
    check_near_blocks(run_blocks(Path::kPlain, scene, cuts), want);
  }
}

TEST_CASE(
    "blocks: rows that reuse choices take those of the rule, on both paths and in any steps") {
  const BlockScene scene({0, 0, 1, 1});
  const Numbers exact = BlockOracle(scene).run();
  for (const uint32_t from : {7U, 25U, 30U})
    for (const uint32_t most_age : {1U, 2U, 5U, 48U}) {
      CAPTURE(from);
      CAPTURE(most_age);
      const IndexReuse reuse{.most_age = most_age, .from = from};
      const Numbers want = BlockOracle(scene, reuse).run();
      CHECK(want != exact);
      std::vector<uint32_t> single = {from}, cut = {5, from};
      for (uint32_t end = from + 1; end <= kTokens; ++end) single.push_back(end);
      for (const uint32_t end : {31U, 36U, 37U, 44U, kTokens})
        if (end > from) cut.push_back(end);
      const Numbers whole = run_blocks(Path::kFast, scene, {from, kTokens}, reuse);
      check_near_blocks(whole, want);
      CHECK(run_blocks(Path::kFast, scene, single, reuse) == whole);
      CHECK(run_blocks(Path::kFast, scene, cut, reuse) == whole);
      for (const auto& ends : {single, cut, {from, kTokens}})
        check_near_blocks(run_blocks(Path::kPlain, scene, ends, reuse), want);
    }
}

TEST_CASE("blocks: a choice that is not where it was kept is made again") {
  const BlockScene scene({0, 0});
  const IndexReuse reuse{.most_age = 7, .from = 20};
  KeptLists<int> kept;
  kept.keep(3, 32, 1);
  CHECK(kept.find(3, 32) != nullptr);
  CHECK(kept.find(3, 33) == nullptr);
  CHECK(kept.find(4, 32) == nullptr);
  const StepRow row{
      .start = 34, .tokens = {0, 0, 0}, .pages = {0, 0, 0, 0, 0, 0, 0, 0, 3, 9}, .reuse = reuse};
  const ReusingRow rule(row, kBlockPage, scene.choice.block, scene.choice.top_k);
  CHECK(rule.choosers(kept) == std::vector<uint32_t>{32, 32, 32});
  kept.clear();
  CHECK(rule.choosers(kept) == std::vector<uint32_t>{34, 35, 36});
  CHECK_FALSE(rule.keeps(34));  // later ones would not look for it
}

TEST_CASE("blocks: beside windows, caps and pages that do not divide them they are refused") {
  BlockScene scene({0, 0});
  for (const int wrong : {0, 1, 2}) {
    BlockScene other = scene;
    if (wrong == 0) other.shape.window = 16;
    if (wrong == 1) other.shape.softcap = 5;
    if (wrong == 2) other.choice.block = 6;
    CHECK_THROWS_AS(run_blocks(Path::kPlain, other, {kTokens}), std::invalid_argument);
  }
}

}  // namespace
}  // namespace tandem::tensor
