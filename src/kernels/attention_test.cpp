#include "kernels/attention.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "kernels/data_test.h"

using namespace tandem::kernels;

namespace {

/// Random requests over a shuffled page pool. What no request owns is not-a-number, so that a
/// kernel that reads it shows.
struct Scene {
  AttentionArgs args;
  std::vector<float> q, k, sinks;         // k [slots, kv_heads, head_dim]
  std::vector<float> v;                   // [slots, kv_heads, value_dim], not looked at when latent
  std::vector<std::byte> k_pool, v_pool;  // the same in the pools' layouts and type
  std::vector<uint32_t> kv_head_of;
  std::vector<std::vector<uint32_t>> tables;
  std::vector<AttentionRow> rows;
  size_t tokens = 0;
  bool is_latent = false;

  Scene(TestRandom& random, size_t most_rows, size_t most_context) {
    args.kv_heads = random.size(1, 4);
    args.heads = args.kv_heads * random.size(1, 5) + random.size(0, 1);
    args.head_dim = random.chance(0.5)   ? random.pick<size_t>({16, 64, 80, 128, 512})
                    : random.chance(0.8) ? random.size(1, 40)
                                         : random.size(100, 256);
    args.page_tokens = random.pick<size_t>({1, 7, 8, 16, 24, 32, 64, 128});
    if (random.chance(0.3)) make_latent(random.size(1, args.head_dim));
    if (!is_latent && random.chance(0.3)) args.value_dim = random.pick<size_t>({8, 32, 128, 300});
    args.kv_type = random.pick({ScalarType::kF16, ScalarType::kF16, ScalarType::kF32});
    args.scale = 1.0f / std::sqrt(static_cast<float>(args.head_dim));
    args.window = random.chance(0.3) ? random.size(1, most_context) : 0;
    args.softcap = random.chance(0.2) ? 5.0f : 0.0f;
    for (size_t h = 0; h < args.heads; ++h) {
      kv_head_of.push_back(static_cast<uint32_t>(random.size(0, args.kv_heads - 1)));
    }
    const size_t count = random.size(1, most_rows);
    for (size_t i = 0; i < count; ++i) {
      const size_t context = random.size(1, most_context);
      const size_t fresh = random.chance(0.4) ? 1 : random.size(1, std::min<size_t>(context, 40));
      rows.push_back({.first_token = tokens,
                      .count = fresh,
                      .start = context - fresh,
                      .is_chunk = random.chance(0.6)});
      tokens += fresh;
    }
    fill_pools(random);
    args.q_stride = args.heads * args.head_dim + random.size(0, 3);
    q = random.normals(tokens * args.q_stride, 2.0f);
    if (random.chance(0.3)) sinks = random.normals(args.heads);
    args.q = q.data();
    args.sinks = sinks.empty() ? nullptr : sinks.data();
    use_pools();
    args.kv_head_of = kv_head_of.data();
    args.rows = rows;
  }

  /// Values become the last dimensions of keys.
  void make_latent(size_t value_dim) {
    is_latent = true;
    args.value_dim = value_dim;
  }

  void use_pools() {
    args.k_pool = k_pool.data();
    args.v_pool = is_latent ? nullptr : v_pool.data();
  }

  size_t value_dim() const { return args.value_dim == 0 ? args.head_dim : args.value_dim; }

  /// One prompt whose `heads` query heads read one KV head.
  Scene(ScalarType type, size_t dim, size_t heads, size_t count) : tokens(count) {
    TestRandom random(7);
    args.kv_type = type;
    args.kv_heads = 1;
    args.heads = heads;
    args.head_dim = dim;
    args.scale = 1.0f / std::sqrt(static_cast<float>(dim));
    q = random.normals(tokens * heads * dim, 2.0f);
    k = random.normals(tokens * dim);
    v = random.normals(tokens * dim);
    kv_head_of.assign(heads, 0);
    args.q = q.data();
    args.kv_head_of = kv_head_of.data();
    rows.push_back({.count = tokens});
  }

  /// Lays that prompt out in pages of this size, in their order.
  void use_pages(size_t page_tokens) {
    args.page_tokens = page_tokens;
    const size_t pages = pages_of(rows[0]);
    k.resize(pages * page_tokens * args.head_dim, NAN);
    v.resize(k.size(), NAN);
    tables.assign(1, std::vector<uint32_t>(pages));
    std::iota(tables[0].begin(), tables[0].end(), 0u);
    rows[0].pages = tables[0].data();
    lay_out(pages);
    use_pools();
    args.rows = rows;
  }

  void fill_pools(TestRandom& random) {
    size_t pages = 3;
    for (const AttentionRow& row : rows) pages += pages_of(row);
    std::vector<uint32_t> order(pages);
    std::iota(order.begin(), order.end(), 0u);
    for (size_t i = pages - 1; i > 0; --i) std::swap(order[i], order[random.size(0, i)]);
    const size_t slots_of_heads = pages * args.page_tokens * args.kv_heads;
    k.assign(slots_of_heads * args.head_dim, NAN);
    v.assign(slots_of_heads * value_dim(), NAN);
    size_t next = 0;
    for (AttentionRow& row : rows) {
      const auto begin = order.begin() + static_cast<ptrdiff_t>(next);
      tables.emplace_back(begin, begin + static_cast<ptrdiff_t>(pages_of(row)));
      next += pages_of(row);
      for (size_t at = 0; at < row.start + row.count; ++at) {
        const size_t slot = slot_of(tables.back(), at);
        for (const auto& [to, dim] : {std::pair(&k, args.head_dim), std::pair(&v, value_dim())})
          for (size_t i = 0; i < args.kv_heads * dim; ++i)
            (*to)[slot * args.kv_heads * dim + i] = kept(random.normal());
      }
    }
    for (size_t i = 0; i < rows.size(); ++i) rows[i].pages = tables[i].data();
    lay_out(pages);
  }

  /// As a pool holds it.
  float kept(float x) const { return args.kv_type == ScalarType::kF16 ? from_f16(to_f16(x)) : x; }

  /// Fills the pools. They end where their vectors end, so that a read beyond shows under ASan.
  void lay_out(size_t pages) {
    const size_t bytes = size_of(args.kv_type), tokens_of = args.page_tokens, dim = args.head_dim;
    k_pool.resize(k.size() * bytes);
    v_pool.resize(v.size() * bytes);
    const auto put = [&](std::vector<std::byte>& pool, size_t at, float x) {
      const uint16_t half = std::isnan(x) ? 0x7e00 : to_f16(x);
      std::memcpy(&pool[at * bytes], bytes == 2 ? static_cast<const void*>(&half) : &x, bytes);
    };
    for (size_t slot = 0; slot < pages * tokens_of; ++slot) {
      for (size_t h = 0; h < args.kv_heads; ++h) {
        const size_t first = (slot / tokens_of * args.kv_heads + h) * tokens_of;
        const size_t from = slot * args.kv_heads + h, offset = slot % tokens_of;
        for (size_t i = 0; i < dim; ++i)
          put(k_pool, first * dim + (is_latent ? offset * dim + i : i * tokens_of + offset),
              k[from * dim + i]);
        for (size_t i = 0; i < value_dim(); ++i)
          put(v_pool, (first + offset) * value_dim() + i, v[from * value_dim() + i]);
      }
    }
  }

  size_t pages_of(const AttentionRow& row) const {
    return (row.start + row.count + args.page_tokens - 1) / args.page_tokens;
  }
  size_t slot_of(const std::vector<uint32_t>& table, size_t at) const {
    return table[at / args.page_tokens] * args.page_tokens + at % args.page_tokens;
  }

  std::vector<float> run(WorkerPool& pool) const { return run(pool, rows); }
  std::vector<float> run(WorkerPool& pool, std::span<const AttentionRow> some) const {
    std::vector<float> out(tokens * args.heads * value_dim(), 9.0f);
    AttentionArgs call = args;
    call.rows = some;
    call.out = out.data();
    attention(pool, call);
    return out;
  }

  std::vector<double> reference() const {
    std::vector<double> out(tokens * args.heads * value_dim());
    for (size_t r = 0; r < rows.size(); ++r) {
      for (size_t t = 0; t < rows[r].count; ++t) {
        for (size_t h = 0; h < args.heads; ++h) attend(r, t, h, out);
      }
    }
    return out;
  }

  void attend(size_t r, size_t t, size_t h, std::vector<double>& out) const {
    const size_t d = args.head_dim, at = rows[r].start + t, token = rows[r].first_token + t;
    const size_t first = args.window == 0 || at + 1 < args.window ? 0 : at + 1 - args.window;
    double total = sinks.empty() ? 0 : std::exp(static_cast<double>(sinks[h]));
    const size_t width = value_dim();
    std::vector<double> values(width);
    for (size_t key = first; key <= at; ++key) {
      const size_t row = slot_of(tables[r], key) * args.kv_heads + kv_head_of[h];
      const size_t from = row * d;
      double score = 0;
      for (size_t i = 0; i < d; ++i) {
        score += static_cast<double>(q[token * args.q_stride + h * d + i]) *
                 static_cast<double>(k[from + i]);
      }
      score *= static_cast<double>(args.scale);
      const double cap = static_cast<double>(args.softcap);
      if (cap > 0) score = cap * std::tanh(score / cap);
      total += std::exp(score);
      const float* value = is_latent ? &k[from + d - width] : &v[row * width];
      for (size_t i = 0; i < width; ++i)
        values[i] += std::exp(score) * static_cast<double>(value[i]);
    }
    for (size_t i = 0; i < width; ++i)
      out[(token * args.heads + h) * width + i] = values[i] / total;
  }

  /// The same tokens in pieces of random length.
  std::vector<AttentionRow> cut(TestRandom& random) const {
    std::vector<AttentionRow> pieces;
    for (const AttentionRow& row : rows) {
      for (size_t t = 0; t < row.count;) {
        const size_t take = random.size(1, row.count - t);
        AttentionRow piece = row;
        piece.first_token += t;
        piece.start += t;
        piece.count = take;
        pieces.push_back(piece);
        t += take;
      }
    }
    return pieces;
  }
};

/// Against doubles; tiles take 16 bits of queries and weights.
double tolerance(CpuLevel level) { return level == CpuLevel::kAmx ? 5e-5 : 2e-5; }

void check_scene(
    uint32_t seed, size_t most_rows, size_t most_context, WorkerPool& one, WorkerPool& three) {
  CAPTURE(seed);
  CAPTURE(name(one.level()));
  TestRandom random(seed);
  const Scene scene(random, most_rows, most_context);
  const std::vector<float> out = scene.run(one);
  REQUIRE(worst_error(out, scene.reference()) < tolerance(one.level()));
  REQUIRE(same_bits(out, scene.run(three)));
  const std::vector<AttentionRow> pieces = scene.cut(random);
  REQUIRE(same_bits(out, scene.run(three, pieces)));
  std::vector<AttentionRow> last(1, pieces.back());
  const std::vector<float> alone = scene.run(three, last);
  const size_t from = last[0].first_token * scene.args.heads * scene.value_dim();
  REQUIRE(std::equal(out.begin() + static_cast<ptrdiff_t>(from), out.end(),
                     alone.begin() + static_cast<ptrdiff_t>(from)));
}

}  // namespace

TEST_CASE("attention: close to doubles; equal bits for any chunks, rows and threads") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool one(1, level), three(3, level);
    for (uint32_t seed = 0; seed < cases(150); ++seed) check_scene(seed, 5, 100, one, three);
  }
}

TEST_CASE("attention: long contexts that are split over keys") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool one(1, level), three(3, level);
    for (uint32_t seed = 1000; seed < (kIsSanitized ? 1004 : 1010); ++seed)
      check_scene(seed, 2, 2500, one, three);
  }
}

TEST_CASE(
    "attention: a chunk of hundreds of tokens, alone or in pieces, with and without a window") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool one(1, level), three(3, level);
    TestRandom random(31);
    for (const size_t dim : {64u, 20u, 128u}) {
      for (const size_t window : {0u, 70u, 600u}) {
        for (const size_t heads : {1u, 3u, 7u}) {
          if (kIsSanitized && heads == 7) continue;
          CAPTURE(name(level));
          CAPTURE(dim);
          CAPTURE(window);
          CAPTURE(heads);
          Scene scene(ScalarType::kF16, dim, heads, 300 + 97 * heads);
          scene.args.window = window;
          scene.rows[0].is_chunk = true;
          scene.use_pages(32);
          const std::vector<float> out = scene.run(one);
          REQUIRE(same_bits(out, scene.run(three, scene.cut(random))));
          scene.use_pages(16);
          REQUIRE(same_bits(out, scene.run(three)));
          scene.rows[0].is_chunk = false;
          const std::vector<float> step = scene.run(three);
          REQUIRE(worst_error(out, {step.begin(), step.end()}) < tolerance(level));
        }
      }
    }
  }
}

TEST_CASE("attention: latent keys of a published size, as a prompt in pieces and as steps") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool one(1, level), three(3, level);
    TestRandom random(37);
    for (const ScalarType type : {ScalarType::kF16, ScalarType::kF32}) {
      CAPTURE(name(level));
      Scene scene(type, 576, 17, 130);
      for (float& x : scene.k) x = scene.kept(x);
      scene.args.q_stride = size_t{17} * 576;
      scene.make_latent(512);
      scene.rows[0].is_chunk = true;
      scene.use_pages(32);
      const std::vector<float> out = scene.run(one);
      REQUIRE(worst_error(out, scene.reference()) < tolerance(level));
      REQUIRE(same_bits(out, scene.run(three, scene.cut(random))));
      scene.rows[0].is_chunk = false;
      REQUIRE(worst_error(scene.run(one), scene.reference()) < 2e-5);
    }
  }
}

TEST_CASE("attention: a token that takes some keys attends as if there were no others") {
  for (const CpuLevel level : test_levels()) {
    for (const bool is_chunk : {false, true}) {
      CAPTURE(name(level));
      CAPTURE(is_chunk);
      WorkerPool pool(2, level);
      Scene scene(ScalarType::kF16, 48, 5, 700);
      scene.make_latent(40);
      scene.use_pages(32);
      std::vector<uint32_t> chosen;
      for (uint32_t at = 3; at < 700; at += 1 + at % 4) chosen.push_back(at);
      AttentionRow row = scene.rows[0];
      row.first_token = 9;
      row.count = 1;
      row.start = chosen.size() - 1;
      row.is_chunk = is_chunk;
      row.chosen = chosen.data();
      const std::vector<float> out = scene.run(pool, std::span(&row, 1));
      Scene packed = scene;  // whose first keys are the chosen ones
      for (size_t i = 0; i < chosen.size(); ++i)
        std::copy_n(&scene.k[chosen[i] * 48], 48, &packed.k[i * 48]);
      packed.use_pages(32);
      row.chosen = nullptr;
      row.pages = packed.tables[0].data();
      REQUIRE(same_bits(out, packed.run(pool, std::span(&row, 1))));
    }
  }
}

TEST_CASE("attention: KV heads with lists of pages of their own attend as each would alone") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool one(1, level), three(3, level);
    for (uint32_t seed = 200; seed < 200 + cases(30); ++seed) {
      CAPTURE(name(level));
      CAPTURE(seed);
      TestRandom random(seed);
      const Scene scene(random, 1, 900);
      if (scene.is_latent) continue;
      AttentionRow row = scene.rows[0];
      const size_t pages = scene.tables[0].size();
      std::vector<uint32_t> lists;
      for (size_t g = 0; g < scene.args.kv_heads; ++g) {
        std::vector<uint32_t> list = scene.tables[0];  // of which the last page is not full
        std::rotate(list.begin(), list.begin() + static_cast<ptrdiff_t>(std::min(g, pages - 1)),
                    list.end() - 1);
        lists.insert(lists.end(), list.begin(), list.end());
      }
      row.pages = lists.data();
      row.pages_stride = pages;
      const std::vector<float> out = scene.run(one, std::span(&row, 1));
      REQUIRE(same_bits(out, scene.run(three, std::span(&row, 1))));
      row.pages_stride = 0;
      const auto dim = static_cast<ptrdiff_t>(scene.value_dim());
      for (size_t g = 0; g < scene.args.kv_heads; ++g, row.pages += pages) {
        const std::vector<float> alone = scene.run(three, std::span(&row, 1));
        for (size_t i = 0; i < scene.tokens * scene.args.heads; ++i) {
          const auto from = static_cast<ptrdiff_t>(i) * dim;
          if (scene.kv_head_of[i % scene.args.heads] == g)
            REQUIRE(std::equal(out.begin() + from, out.begin() + from + dim, alone.begin() + from));
        }
      }
    }
  }
}

TEST_CASE("attention: spans whose states are joined in several rounds") {
  const CpuLevel level = detect_cpu_level();
  WorkerPool one(1, level), three(3, level);
  for (const bool is_chunk : {false, true}) {
    constexpr size_t kContext = 14'000, kNew = 600;
    Scene scene(ScalarType::kF16, kIsSanitized ? 64 : 256, 1, kContext);
    AttentionRow& row = scene.rows[0];
    row = {.first_token = kContext - kNew,
           .count = kNew,
           .start = kContext - kNew,
           .is_chunk = is_chunk};
    scene.use_pages(32);
    const std::vector<float> out = scene.run(one);
    REQUIRE(same_bits(out, scene.run(three)));
    WorkerPool many(9, level);
    REQUIRE(same_bits(out, scene.run(many)));
  }
}

TEST_CASE("attention: other page sizes give the same bits, and a prompt those of a decode") {
  for (const CpuLevel level : test_levels()) {
    for (const ScalarType type : {ScalarType::kF32, ScalarType::kF16}) {
      for (const size_t dim : {64u, 24u, 37u}) {
        CAPTURE(name(level));
        CAPTURE(dim);
        WorkerPool pool(2, level);
        Scene scene(type, dim, 3, 700);
        scene.use_pages(32);
        const std::vector<float> out = scene.run(pool);
        for (const size_t tokens : {1u, 9u, 16u, 512u}) {
          CAPTURE(tokens);
          scene.use_pages(tokens);
          REQUIRE(same_bits(out, scene.run(pool)));
        }
        std::vector<AttentionRow> steps;
        for (size_t t = 0; t < scene.tokens; ++t) {
          AttentionRow step = scene.rows[0];
          step.first_token = step.start = t;
          step.count = 1;
          steps.push_back(step);
        }
        REQUIRE(same_bits(out, scene.run(pool, steps)));
      }
    }
  }
}
