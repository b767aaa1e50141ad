#include "kernels/matmul.h"

#include <doctest/doctest.h>

#include "kernels/data_test.h"

using namespace tandem::kernels;

namespace {

/// A random weight in any format, packed, with its values as doubles.
struct Weight {
  PackedMatrix packed;
  std::vector<double> values;

  explicit Weight(TestRandom& random) {
    const size_t rows = random.size(1, 90);
    if (random.chance(0.6)) {
      const TestQuantized source(random, rows, random.size(1, 9),
                                 random.pick({2u, 3u, 4u, 4u, 5u, 6u, 8u}),
                                 random.pick({32u, 64u, 128u}));
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

  std::vector<double> reference(const Weight& w) const {
    std::vector<double> out(y.begin(), y.end());
    for (size_t r = 0; r < args.rows; ++r) {
      for (size_t n = 0; n < w.packed.outputs(); ++n) {
        double sum = args.bias == nullptr ? 0.0 : static_cast<double>(bias[n]);
        for (size_t k = 0; k < w.packed.inputs(); ++k) {
          sum +=
              static_cast<double>(x[r * args.x_stride + k]) * w.values[n * w.packed.inputs() + k];
        }
        double& to = out[r * args.y_stride + n];
        to = args.accumulate ? to + sum : sum;
      }
    }
    return out;
  }
};

}  // namespace

TEST_CASE("matmul: close to a double product, equal bits row by row and on any threads") {
  for (const CpuLevel level : test_levels()) {
    WorkerPool one(1, level);
    WorkerPool three(3, level);
    for (uint32_t seed = 0; seed < 200; ++seed) {
      CAPTURE(seed);
      CAPTURE(name(level));
      TestRandom random(seed);
      const Weight w(random);
      const size_t rows = random.chance(0.1) ? random.size(18, 300) : random.size(1, 17);
      const Product product(random, w.packed, rows);
      const std::vector<float> out = product.run(one, w.packed);
      REQUIRE(worst_error(out, product.reference(w)) < 1e-4);
      REQUIRE(same_bits(out, product.run_row_by_row(one, w.packed)));
      REQUIRE(same_bits(out, product.run(three, w.packed)));
    }
  }
}

TEST_CASE("matmul: a slice of the outputs has the bits of the whole") {
  WorkerPool pool(2);
  for (uint32_t seed = 0; seed < 60; ++seed) {
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
