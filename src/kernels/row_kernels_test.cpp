#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "kernels/activation.h"
#include "kernels/data_test.h"
#include "kernels/kv_write.h"
#include "kernels/limited_swiglu.h"
#include "kernels/norm.h"
#include "kernels/rope.h"

using namespace tandem::kernels;

namespace {

/// Calls check(pool, other pool, random) for many seeds at every level; the pools differ in
/// threads.
void for_many_shapes(uint32_t seeds,
                     const std::function<void(WorkerPool&, WorkerPool&, TestRandom&)>& check) {
  for (const CpuLevel level : test_levels()) {
    WorkerPool one(1, level);
    WorkerPool two(2, level);
    for (uint32_t seed = 0; seed < cases(seeds); ++seed) {
      CAPTURE(name(level));
      CAPTURE(seed);
      TestRandom random(seed);
      check(one, two, random);
    }
  }
}

/// Mostly small, sometimes large enough to be shared between threads.
size_t random_rows(TestRandom& random) {
  return random.chance(0.1) ? random.size(100, 400) : random.size(1, 17);
}

}  // namespace

TEST_CASE("rms norm: close to doubles, with strides and offsets, equal bits per row") {
  for_many_shapes(500, [](WorkerPool& one, WorkerPool& two, TestRandom& random) {
    const size_t rows = random_rows(random), width = random.size(1, 300);
    const size_t stride = width + random.size(0, 3);
    const std::vector<float> x = random.normals(rows * stride, 3.0f);
    const std::vector<float> weight = random.normals(width);
    RmsNormArgs args{.x = x.data(), .rows = rows, .width = width, .x_stride = stride};
    args.weight = random.chance(0.8) ? weight.data() : nullptr;
    args.weight_offset = random.chance(0.3) ? 1.0f : 0.0f;
    args.eps = 1e-5f;
    std::vector<float> out(rows * width);
    args.out = out.data();
    rms_norm(one, args);

    std::vector<double> want(rows * width);
    for (size_t r = 0; r < rows; ++r) {
      double squares = 0;
      const auto value = [&](size_t i) { return static_cast<double>(x[r * stride + i]); };
      for (size_t i = 0; i < width; ++i) squares += value(i) * value(i);
      const double root = std::sqrt(squares / static_cast<double>(width) + 1e-5);
      for (size_t i = 0; i < width; ++i) {
        const double w = args.weight == nullptr ? 1.0
                                                : static_cast<double>(weight[i]) +
                                                      static_cast<double>(args.weight_offset);
        want[r * width + i] = value(i) / root * w;
      }
    }
    REQUIRE(worst_error(out, want) < 1e-5);

    std::vector<float> other(rows * width);
    args.out = other.data();
    rms_norm(two, args);
    REQUIRE(same_bits(out, other));
    for (size_t r = 0; r < rows; ++r) {
      RmsNormArgs row = args;
      row.rows = 1;
      row.x += r * stride;
      row.out += r * width;
      rms_norm(one, row);
    }
    REQUIRE(same_bits(out, other));
  });
}

TEST_CASE("rms norm of a sum: the bits of a sum and then a norm") {
  for_many_shapes(100, [](WorkerPool& one, WorkerPool& two, TestRandom& random) {
    const size_t rows = random_rows(random), width = random.size(1, 300);
    const size_t stride = width + random.size(0, 3);
    const std::vector<float> x = random.normals(rows * stride), y = random.normals(rows * stride);
    const std::vector<float> weight = random.normals(width);
    std::vector<float> sum(rows * width), out(rows * width), want_sum(rows * width), want = out;
    for (size_t i = 0; i < rows * width; ++i) {
      const size_t at = i / width * stride + i % width;
      want_sum[i] = x[at] + y[at];
    }
    RmsNormArgs args{.rows = rows, .width = width, .weight = weight.data()};
    args.x = want_sum.data();
    args.out = want.data();
    rms_norm(one, args);
    args.x = x.data();
    args.x_stride = stride;
    args.out = out.data();
    add_rms_norm(two, args, {.y = y.data(), .y_stride = stride, .sum = sum.data()});
    REQUIRE(same_bits(sum, want_sum));
    REQUIRE(same_bits(out, want));
  });
}

TEST_CASE("rms norm of a part of a row: with the squares of all parts, as of the whole") {
  for_many_shapes(200, [](WorkerPool& one, WorkerPool& two, TestRandom& random) {
    const size_t rows = random_rows(random), width = random.size(2, 300);
    const size_t cut = random.size(1, width - 1);
    const std::vector<float> x = random.normals(rows * width), weight = random.normals(width);
    std::vector<float> squares(2 * rows), want(rows * width), out(rows * width);
    RmsNormArgs args{.x = x.data(), .rows = rows, .width = width, .weight = weight.data()};
    args.out = want.data();
    rms_norm(one, args);
    // Beside each other in one array, as the ranks' exchange has them.
    sum_squares(one, {.x = x.data(),
                      .rows = rows,
                      .width = cut,
                      .x_stride = width,
                      .out = squares.data() + 1,
                      .out_stride = 2});
    std::vector<float> rest(rows);
    sum_squares(two, {.x = x.data() + cut,
                      .rows = rows,
                      .width = width - cut,
                      .x_stride = width,
                      .out = rest.data()});
    for (size_t r = 0; r < rows; ++r) squares[2 * r + 1] += rest[r];
    args.squares = squares.data() + 1;
    args.squares_stride = 2;
    args.squares_width = width;
    args.x_stride = args.out_stride = width;
    for (const size_t begin : {size_t{0}, cut}) {
      args.x = x.data() + begin;
      args.weight = weight.data() + begin;
      args.out = out.data() + begin;
      args.width = begin == 0 ? cut : width - cut;
      rms_norm(two, args);
    }
    REQUIRE(worst_error(out, {want.begin(), want.end()}) < 1e-5);
  });
}

TEST_CASE("rope: rotates whole or partial heads in both pairings as complex numbers") {
  for_many_shapes(500, [](WorkerPool& one, WorkerPool& two, TestRandom& random) {
    const size_t tokens = random_rows(random), heads = random.size(1, 9);
    const size_t pairs = random.size(1, 40), dim = 2 * pairs + random.size(0, 2) * 5;
    std::vector<uint32_t> positions(tokens);
    for (uint32_t& p : positions) p = static_cast<uint32_t>(random.size(0, 100000));
    std::vector<float> frequencies(pairs);
    for (size_t p = 0; p < pairs; ++p) {
      frequencies[p] = std::pow(10000.0f, -static_cast<float>(p) / static_cast<float>(pairs));
    }
    std::vector<float> cosine(tokens * pairs), sine(tokens * pairs);
    rope_table(two, positions.data(), tokens, frequencies.data(), pairs, cosine.data(),
               sine.data());

    RopeArgs args{.tokens = tokens, .heads = heads, .head_dim = dim};
    args.token_stride = heads * dim + random.size(0, 4);
    args.pairs = pairs;
    args.interleaved = random.chance(0.5);
    args.cosine = cosine.data();
    args.sine = sine.data();
    args.scale = random.chance(0.3) ? 1.3f : 1.0f;
    const std::vector<float> before = random.normals(tokens * args.token_stride);
    std::vector<double> want(before.begin(), before.end());
    for (size_t t = 0; t < tokens; ++t) {
      for (size_t h = 0; h < heads; ++h) {
        for (size_t p = 0; p < pairs; ++p) {
          const size_t at = t * args.token_stride + h * dim;
          const size_t a = at + (args.interleaved ? 2 * p : p);
          const size_t b = args.interleaved ? a + 1 : a + pairs;
          const float angle = static_cast<float>(positions[t]) * frequencies[p];
          const double c = std::cos(static_cast<double>(angle)),
                       s = std::sin(static_cast<double>(angle));
          const double x = before[a], y = before[b], scale = args.scale;
          want[a] = scale * (x * c - y * s);
          want[b] = scale * (x * s + y * c);
        }
      }
    }
    std::vector<float> out = before, other = before;
    args.x = out.data();
    rope(one, args);
    REQUIRE(worst_error(out, want) < 2e-6);
    args.x = other.data();
    rope(two, args);
    REQUIRE(same_bits(out, other));
  });
}

namespace {

struct NamedGate {
  void (*run)(WorkerPool&, const GatedArgs&);
  double (*want)(double gate, double up);
};

const NamedGate kGates[] = {
    {swiglu, [](double x, double u) { return u * x / (1 + std::exp(-x)); }},
    {sigmoid_gated, [](double x, double u) { return u / (1 + std::exp(-x)); }},
    {geglu_tanh,
     [](double x, double u) {
       const double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
       return u * 0.5 * x * (1 + std::tanh(inner));
     }},
    {relu_gated, [](double x, double u) { return std::max(x, 0.0) * u; }},
    {clamped_swiglu, [](double x, double u) {
       const double g = std::min(x, 7.0);
       return g / (1 + std::exp(-1.702 * g)) * (std::clamp(u, -7.0, 7.0) + 1);
     }}};

}  // namespace

TEST_CASE("gated activations: within 2e-6 of doubles over the whole range, wherever a value lies") {
  for_many_shapes(500, [](WorkerPool& one, WorkerPool& two, TestRandom& random) {
    const size_t rows = random_rows(random), width = random.size(1, 100);
    const size_t gate_stride = width + random.size(0, 3), up_stride = width + random.size(0, 3);
    const NamedGate& named = kGates[random.size(0, std::size(kGates) - 1)];
    const auto gate = random.normals(rows * gate_stride, random.pick({0.01f, 1.0f, 10.0f, 100.0f}));
    const auto up = random.normals(rows * up_stride, named.run == clamped_swiglu ? 5.0f : 1.0f);
    GatedArgs args{.gate = gate.data(), .up = up.data(), .rows = rows, .width = width};
    args.gate_stride = gate_stride;
    args.up_stride = up_stride;
    const auto run = [&](WorkerPool& pool) {
      std::vector<float> out(rows * width);
      args.out = out.data();
      named.run(pool, args);
      return out;
    };
    const std::vector<float> out = run(one);
    std::vector<double> want(rows * width);
    for (size_t i = 0; i < want.size(); ++i) {
      const double x = gate[i / width * gate_stride + i % width];
      const double u = up[i / width * up_stride + i % width];
      want[i] = named.want(x, u);
    }
    REQUIRE(worst_error(out, want) < 2e-6);
    REQUIRE(same_bits(out, run(two)));

    const size_t i = random.size(0, out.size() - 1);
    const float x = gate[i / width * gate_stride + i % width];
    const float u = up[i / width * up_stride + i % width];
    std::vector<float> alone(1);
    const GatedArgs single{.gate = &x, .up = &u, .out = alone.data(), .rows = 1, .width = 1};
    named.run(one, single);
    REQUIRE(alone[0] == out[i]);
  });
}

TEST_CASE("limited swiglu: the gate is capped from above, what it weighs from both sides") {
  const std::vector<float> gate = {-8, -1, 0, 0.5f, 1, 9, 3}, up = {-9, 1, 2, -0.5f, 0.75f, 4, -4};
  WorkerPool pool(2);
  std::vector<float> out(gate.size());
  limited_swiglu(
      pool,
      {.gate = gate.data(), .up = up.data(), .out = out.data(), .rows = 1, .width = gate.size()},
      0.7f);
  for (size_t i = 0; i < gate.size(); ++i) {
    const double silu = double{gate[i]} / (1 + std::exp(-double{gate[i]}));
    const double want = std::min(silu, 0.7) * std::clamp(double{up[i]}, -0.7, 0.7);
    CHECK(std::abs(double{out[i]} - want) < 1e-6);
  }
}

TEST_CASE("softcap: relative error below 2e-6, and its limits are the cap") {
  for_many_shapes(200, [](WorkerPool& one, WorkerPool& two, TestRandom& random) {
    const size_t count = random.chance(0.1) ? 20000 : random.size(1, 50);
    const float cap = random.pick({1.0f, 30.0f, 50.0f});
    const auto before = random.normals(count, cap * random.pick({0.001f, 0.3f, 1.0f, 20.0f}));
    std::vector<float> out = before, other = before;
    softcap(one, out.data(), cap, count);
    softcap(two, other.data(), cap, count);
    REQUIRE(same_bits(out, other));
    double worst = 0;
    for (size_t i = 0; i < count; ++i) {
      const double x = static_cast<double>(before[i] / cap);
      const double want = static_cast<double>(cap) * std::tanh(x);
      worst = std::max(worst, std::fabs(static_cast<double>(out[i]) / want - 1));
    }
    REQUIRE(worst <= 2e-6);
  });
}

TEST_CASE("activations: not-a-number stays visible") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool pool(1, level);
    const float gate = NAN, up = 1.0f;
    float out = 0.0f;
    swiglu(pool, {.gate = &gate, .up = &up, .out = &out, .rows = 1, .width = 1});
    CHECK(std::isnan(out));
    out = NAN;
    softcap(pool, &out, 30.0f, 1);
    CHECK(std::isnan(out));
  }
}

TEST_CASE("add and scale: exact, for any count") {
  for_many_shapes(50, [](WorkerPool&, WorkerPool& two, TestRandom& random) {
    const size_t count = random.chance(0.2) ? 50000 : random.size(0, 40);
    const auto x = random.normals(count), before = random.normals(count);
    std::vector<float> y = before;
    add(two, y.data(), x.data(), count);
    scale(two, y.data(), 1.7f, count);
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) wrong += y[i] != (before[i] + x[i]) * 1.7f;
    REQUIRE(wrong == 0);
  });
}

namespace {

/// Tokens whose keys and values go to scattered slots of pools full of ones.
struct WriteScene {
  KvWriteArgs args;
  std::vector<uint32_t> slots;
  std::vector<float> k, v;
  std::vector<std::byte> k_pool, v_pool;

  explicit WriteScene(TestRandom& random) {
    args.kv_heads = random.size(1, 4);
    args.head_dim = random.size(1, 80);
    if (random.chance(0.3)) args.value_dim = random.size(1, 80);
    args.tokens = random_rows(random);
    args.page_tokens = random.pick<size_t>({1, 5, 16, 32});
    args.kv_type = random.pick({ScalarType::kF16, ScalarType::kF32});
    args.k_stride = width() + random.size(0, 3);
    const size_t pages = 2 * args.tokens / args.page_tokens + 2;
    for (size_t t = 0; t < args.tokens; ++t)
      slots.push_back(static_cast<uint32_t>(pages * args.page_tokens - 1 - 2 * t));
    k = random.normals(args.tokens * args.k_stride, random.pick({1.0f, 1e5f, 1e-6f}));
    v = random.normals(args.tokens * args.kv_heads * value_dim(), 1e5f);
    const size_t slots_of_heads = pages * args.page_tokens * args.kv_heads;
    k_pool = encode(std::vector<float>(slots_of_heads * args.head_dim, 1.0f), args.kv_type);
    v_pool = encode(std::vector<float>(slots_of_heads * value_dim(), 1.0f), args.kv_type);
    args.k = k.data();
    args.v = random.chance(0.3) ? nullptr : v.data();  // keys alone
    args.has_key_rows = random.chance(0.3);
    args.slots = slots.data();
    args.k_pool = k_pool.data();
    args.v_pool = v_pool.data();
  }

  size_t width() const { return args.kv_heads * args.head_dim; }
  size_t value_dim() const { return args.value_dim == 0 ? args.head_dim : args.value_dim; }
  float kept(float x) const { return args.kv_type == ScalarType::kF16 ? from_f16(to_f16(x)) : x; }

  /// How many of the pools' elements are not what they should be.
  size_t wrong() const {
    std::vector<float> k_want(k_pool.size() / size_of(args.kv_type), 1.0f);
    std::vector<float> v_want(v_pool.size() / size_of(args.kv_type), 1.0f);
    for (size_t t = 0; t < args.tokens; ++t) {
      const size_t page = slots[t] / args.page_tokens, offset = slots[t] % args.page_tokens;
      for (size_t i = 0; i < width(); ++i) {
        const size_t h = i / args.head_dim, d = i % args.head_dim;
        const size_t first = (page * args.kv_heads + h) * args.page_tokens * args.head_dim;
        const size_t row = first + offset * args.head_dim + d;
        const size_t column = first + d * args.page_tokens + offset;
        k_want[args.has_key_rows ? row : column] = kept(k[t * args.k_stride + i]);
      }
      const size_t values = args.kv_heads * value_dim();
      for (size_t i = 0; i < values && args.v != nullptr; ++i) {
        const size_t h = i / value_dim(), d = i % value_dim();
        const size_t row = (page * args.kv_heads + h) * args.page_tokens + offset;
        v_want[row * value_dim() + d] = kept(v[t * values + i]);
      }
    }
    return differing(k_pool, k_want) + differing(v_pool, v_want);
  }
  size_t differing(const std::vector<std::byte>& pool, const std::vector<float>& want) const {
    size_t count = 0;
    for (size_t i = 0; i < want.size(); ++i)
      count += load_scalar(pool.data(), args.kv_type, i) != want[i];
    return count;
  }
};

}  // namespace

TEST_CASE("kv write: each token lands in its slot in the pool's type, everything else stays") {
  for_many_shapes(100, [](WorkerPool&, WorkerPool& two, TestRandom& random) {
    WriteScene scene(random);
    kv_write(two, scene.args);
    REQUIRE(scene.wrong() == 0);
  });
}

TEST_CASE("kv write: keys are rotated on their way as rope() rotates them") {
  for_many_shapes(100, [](WorkerPool& one, WorkerPool& two, TestRandom& random) {
    WriteScene scene(random);
    RopeArgs rope{.pairs = random.size(0, scene.args.head_dim / 2)};
    rope.interleaved = random.chance(0.5);
    const auto cosine = random.normals(scene.args.tokens * rope.pairs);
    const auto sine = random.normals(scene.args.tokens * rope.pairs);
    rope.cosine = cosine.data();
    rope.sine = sine.data();
    std::vector<float> rotated = scene.k;
    scene.args.rope = &rope;
    kv_write(two, scene.args);
    rope.x = rotated.data();
    rope.tokens = scene.args.tokens;
    rope.heads = scene.args.kv_heads;
    rope.head_dim = scene.args.head_dim;
    rope.token_stride = scene.args.k_stride;
    tandem::kernels::rope(one, rope);
    REQUIRE(same_bits(rotated, scene.k));
    REQUIRE(scene.wrong() == 0);
  });
}

TEST_CASE("float16: rounds to nearest even, saturates and keeps what is not a number") {
  CHECK(to_f16(1.0f) == 0x3c00);
  CHECK(to_f16(1e9f) == 0x7bff);
  CHECK(to_f16(-INFINITY) == 0xfbff);
  CHECK(to_f16(65519.0f) == 0x7bff);
  CHECK(std::isnan(from_f16(to_f16(NAN))));
  size_t wrong = 0;
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const auto half = static_cast<uint16_t>(bits), next = static_cast<uint16_t>(bits + 1);
    const float a = from_f16(half), b = from_f16(next), middle = (a + b) / 2;
    wrong += to_f16(a) != half;
    wrong += to_f16(-a) != (half | 0x8000);
    wrong += to_f16(middle) != (bits % 2 == 0 ? half : next);
    wrong += to_f16(std::nextafter(middle, 0.0f)) != half;
    wrong += to_f16(std::nextafter(middle, 1e9f)) != next;
  }
  CHECK(wrong == 0);
}
