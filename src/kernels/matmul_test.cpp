#include "kernels/matmul.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "kernels/data_test.h"
#include "kernels/row_codes.h"

using namespace tandem::kernels;

namespace {

const std::initializer_list<TestFloats> kFloats = {TestFloats::mxfp4(), TestFloats::mxfp8(),
                                                   TestFloats::nvfp4()};

/// A random weight in any format, packed, with its values as doubles.
struct Weight {
  PackedMatrix packed;
  std::vector<double> values;

  explicit Weight(TestRandom& random) {
    const size_t rows = random.size(1, 90);
    if (random.chance(0.7)) {
      const TestQuantized source = quantized(random, rows);
      auto result = PackedMatrix::from_quantized(source.view);
      REQUIRE(result);
      packed = std::move(*result);
      for (size_t i = 0; i < rows * source.view.cols; ++i) {
        values.push_back(source.weight(i / source.view.cols, i % source.view.cols));
      }
      return;
    }
    DenseView view;
    view.rows = rows;
    view.cols = random.size(1, 600);
    view.type = random.pick({ScalarType::kF32, ScalarType::kF16, ScalarType::kBf16});
    const auto data = encode(random.normals(rows * view.cols), view.type);
    view.data = data.data();
    auto result = PackedMatrix::from_dense(view);
    REQUIRE(result);
    packed = std::move(*result);
    for (size_t i = 0; i < rows * view.cols; ++i) {
      values.push_back(static_cast<double>(load_scalar(data.data(), view.type, i)));
    }
  }

 private:
  static TestQuantized quantized(TestRandom& random, size_t rows) {
    const size_t groups = random.size(1, 9);
    if (random.chance(0.3)) return {random, rows, groups, random.pick(kFloats)};
    return {random, rows, groups, random.pick({2u, 3u, 4u, 4u, 5u, 6u, 8u}),
            random.pick({32u, 64u, 128u})};
  }
};

/// Random inputs of a product, with the outputs before it.
struct Product {
  MatmulArgs args;
  std::vector<float> x, y, bias;

  Product(TestRandom& random, const PackedMatrix& w, size_t rows) {
    args.rows = rows;
    args.x_stride = w.inputs() + random.size(0, 3);
    args.y_stride = w.outputs() + random.size(0, 3);
    args.accumulate = random.chance(0.3);
    x = random.normals(rows * args.x_stride);
    y = random.normals(rows * args.y_stride);
    if (random.chance(0.5)) bias = random.normals(w.outputs());
    args.x = x.data();
    args.bias = bias.empty() ? nullptr : bias.data();
  }

  std::vector<float> run(WorkerPool& pool, const PackedMatrix& w) const {
    std::vector<float> out = y;
    MatmulArgs call = args;
    call.y = out.data();
    matmul(pool, w, call);
    return out;
  }

  std::vector<float> run_row_by_row(WorkerPool& pool, const PackedMatrix& w) const {
    std::vector<float> out = y;
    for (size_t r = 0; r < args.rows; ++r) {
      MatmulArgs call = args;
      call.rows = 1;
      call.x += r * args.x_stride;
      call.y = out.data() + r * args.y_stride;
      matmul(pool, w, call);
    }
    return out;
  }

  /// The greatest distance from a double product, in parts of what rounding may make it: of x to
  /// 16-bit codes when quantized, of sums to float32.
  double worst_error(const Weight& w, const std::vector<float>& out) const {
    double worst = 0;
    for (size_t r = 0; r < args.rows; ++r) {
      for (size_t n = 0; n < w.packed.outputs(); ++n) worst = std::max(worst, error(w, out, r, n));
    }
    return worst;
  }

 private:
  double error(const Weight& w, const std::vector<float>& out, size_t row, size_t n) const {
    const size_t inputs = w.packed.inputs();
    const float* from = x.data() + row * args.x_stride;
    const double before = static_cast<double>(y[row * args.y_stride + n]);
    double sum = args.bias == nullptr ? 0.0 : static_cast<double>(bias[n]);
    if (args.accumulate) sum += before;
    double size = std::fabs(sum), coded = 0;
    for (size_t k = 0; k < inputs; ++k) {
      const double weight = w.values[n * inputs + k], value = static_cast<double>(from[k]);
      sum += value * weight;
      size += std::fabs(value * weight);
      if (w.packed.takes_row_codes())
        coded += std::fabs(weight) * greatest(from, k, w.packed.group());
    }
    const double allowed = size * 2e-6 + coded * 0.5001 / static_cast<double>(RowCodes::kMost);
    return std::fabs(static_cast<double>(out[row * args.y_stride + n]) - sum) / allowed;
  }

  static double greatest(const float* from, size_t column, size_t group) {
    const size_t begin = column / group * group;
    float most = 0;
    for (size_t k = begin; k < begin + group; ++k) most = std::max(most, std::fabs(from[k]));
    return static_cast<double>(most);
  }
};

}  // namespace

TEST_CASE("matmul: close to a double product, equal bits row by row and on any threads") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool one(1, level);
    WorkerPool three(3, level);
    for (uint32_t seed = 0; seed < cases(500); ++seed) {
      CAPTURE(seed);
      CAPTURE(name(level));
      TestRandom random(seed);
      const Weight w(random);
      const size_t rows = random.chance(0.1) ? random.size(18, 300) : random.size(1, 17);
      const Product product(random, w.packed, rows);
      const std::vector<float> out = product.run(one, w.packed);
      REQUIRE(product.worst_error(w, out) < 1);
      REQUIRE(same_bits(out, product.run_row_by_row(one, w.packed)));
      REQUIRE(same_bits(out, product.run(three, w.packed)));
    }
  }
}

TEST_CASE("matmul: quantized products have the same bits at all levels that fuse multiply-adds") {
  for (uint32_t seed = 0; seed < cases(100); ++seed) {
    CAPTURE(seed);
    TestRandom random(seed);
    const size_t rows = random.size(1, 90), groups = random.size(1, 9);
    const TestQuantized source =
        random.chance(0.3) ? TestQuantized(random, rows, groups, random.pick(kFloats))
                           : TestQuantized(random, rows, groups, random.pick({2u, 4u, 8u}),
                                           random.pick({32u, 64u, 128u}));
    const auto w = PackedMatrix::from_quantized(source.view);
    REQUIRE(w);
    if (!w->takes_row_codes()) continue;
    const Product product(random, *w, random.size(1, 70));
    WorkerPool first(1, CpuLevel::kPortable);
    const std::vector<float> portable = product.run(first, *w);
    std::vector<float> before;
    for (const CpuLevel level : test_levels()) {
      if (level == CpuLevel::kPortable) continue;
      WorkerPool pool(1, level);
      const std::vector<float> out = product.run(pool, *w);
      CAPTURE(name(level));
      if (!before.empty()) REQUIRE(same_bits(out, before));
      before = out;
      for (size_t i = 0; i < out.size(); ++i)
        REQUIRE(out[i] == doctest::Approx(portable[i]).epsilon(1e-4));
    }
  }
}

TEST_CASE("matmul: values that are not finite come out, and only in their rows") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool pool(1, level);
    TestRandom random(3);
    for (const float bad : {INFINITY, -INFINITY, NAN}) {
      for (const size_t rows : {3u, 40u}) {
        const Weight w(random);
        Product product(random, w.packed, rows);
        const std::vector<float> good = product.run(pool, w.packed);
        product.x[product.args.x_stride] = bad;
        product.args.x = product.x.data();
        const std::vector<float> out = product.run(pool, w.packed);
        for (size_t i = 0; i < rows * w.packed.outputs(); ++i) {
          const size_t row = i / w.packed.outputs();
          const size_t at = row * product.args.y_stride + i % w.packed.outputs();
          if (row == 1)
            REQUIRE(!std::isfinite(out[at]));
          else
            REQUIRE(out[at] == good[at]);
        }
      }
    }
  }
}

TEST_CASE("matmul: a slice of the outputs has the bits of the whole") {
  WorkerPool pool(2);
  for (uint32_t seed = 0; seed < cases(60); ++seed) {
    CAPTURE(seed);
    TestRandom random(seed);
    const size_t rows = random.size(2, 90);
    const TestQuantized source(random, rows, random.size(1, 5), random.pick({4u, 8u}),
                               random.pick({32u, 64u}));
    QuantizedView part = source.view;
    part.row_slice.begin = random.size(0, rows - 1);
    const auto whole = PackedMatrix::from_quantized(source.view);
    const auto slice = PackedMatrix::from_quantized(part);
    REQUIRE((whole && slice));
    const size_t count = random.size(1, 20);
    const std::vector<float> x = random.normals(count * whole->inputs());
    std::vector<float> a(count * whole->outputs()), b(count * slice->outputs());
    matmul(pool, *whole, {.x = x.data(), .rows = count, .y = a.data()});
    matmul(pool, *slice, {.x = x.data(), .rows = count, .y = b.data()});
    for (size_t i = 0; i < b.size(); ++i) {
      const size_t row = i / slice->outputs();
      const size_t n = part.row_slice.begin + i % slice->outputs();
      REQUIRE(b[i] == a[row * whole->outputs() + n]);
    }
  }
}

TEST_CASE("matmul: writes its outputs only") {
  WorkerPool pool(1);
  TestRandom random(7);
  for (size_t rows : {1u, 5u, 9u}) {
    const TestQuantized source(random, 21, 2, 4, 32);
    const auto w = PackedMatrix::from_quantized(source.view);
    REQUIRE(w);
    const std::vector<float> x = random.normals(rows * w->inputs());
    std::vector<float> y(rows * 30, 77.0f);
    matmul(pool, *w, {.x = x.data(), .rows = rows, .y = y.data(), .y_stride = 30});
    for (size_t i = 0; i < y.size(); ++i) CHECK((y[i] == 77.0f) == (i % 30 >= 21));
  }
}
