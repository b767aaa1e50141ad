#include "kernels/grouped_matmul.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "kernels/data_test.h"
#include "kernels/matmul.h"

using namespace tandem::kernels;

namespace {

/// Experts of one random shape and format.
std::vector<PackedMatrix> random_experts(TestRandom& random, size_t count) {
  const size_t outputs = random.size(1, 90);
  const bool dense = random.chance(0.3), floats = random.chance(0.3);
  const bool is_in_float32 = random.chance(0.3);
  const uint32_t bits = random.pick({2u, 3u, 4u, 4u, 6u, 8u});
  const uint32_t group = random.pick({32u, 64u});
  const size_t groups = random.size(1, 5);
  const ScalarType type = random.pick({ScalarType::kF32, ScalarType::kF16, ScalarType::kBf16});
  std::vector<PackedMatrix> out;
  for (size_t e = 0; e < count; ++e) {
    if (dense) {
      DenseView view{.type = type, .rows = outputs, .cols = groups * group - 3};
      const auto data = encode(random.normals(view.rows * view.cols), type);
      view.data = data.data();
      out.push_back(std::move(*PackedMatrix::from_dense(view)));
    } else if (floats) {
      TestQuantized source(random, outputs, groups, TestFloats::mxfp4());
      source.view.is_in_float32 = is_in_float32;
      out.push_back(std::move(*PackedMatrix::from_quantized(source.view)));
    } else {
      TestQuantized source(random, outputs, groups, bits, group);
      source.view.scale_type = type;
      source.scales = encode(random.normals(outputs * groups, 0.1f), type);
      source.biases = encode(random.normals(outputs * groups, 0.5f), type);
      source.view.scales = source.scales.data();
      source.view.biases = source.biases.data();
      out.push_back(std::move(*PackedMatrix::from_quantized(source.view)));
    }
  }
  return out;
}

/// top_k different experts for each row, of the first `used` experts.
std::vector<uint32_t> random_choices(TestRandom& random, size_t rows, size_t top_k, size_t used) {
  std::vector<uint32_t> ids, all(used);
  std::iota(all.begin(), all.end(), 0u);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t k = 0; k < top_k; ++k) {
      std::swap(all[k], all[random.size(k, used - 1)]);
      ids.push_back(all[k]);
    }
  }
  return ids;
}

struct Grouped {
  size_t top_k, rows, x_stride, y_stride;
  std::vector<uint32_t> ids;
  std::vector<float> x, bias;

  Grouped(TestRandom& random, std::span<const PackedMatrix> experts) {
    const size_t used = random.size(1, experts.size());
    top_k = random.size(1, std::min<size_t>(used, 4));
    rows = random.chance(0.1) ? random.size(18, 300) : random.size(1, 17);
    ids = random_choices(random, rows, top_k, used);
    x_stride = experts[0].inputs() + random.size(0, 3);
    y_stride = experts[0].outputs() + random.size(0, 3);
    x = random.normals(rows * x_stride);
    if (random.chance(0.5)) bias = random.normals(experts.size() * experts[0].outputs());
  }

  /// [rows * top_k, y_stride] in the order of the choices.
  std::vector<float> together(WorkerPool& pool, std::span<const PackedMatrix> experts) const {
    const ExpertRows groups = group_by_expert(ids, top_k, experts.size());
    std::vector<float> y(ids.size() * y_stride, 77.0f), out;
    moe_matmul(pool, experts,
               {.x = x.data(),
                .x_stride = x_stride,
                .offsets = groups.offsets,
                .x_rows = groups.rows.data(),
                .y = y.data(),
                .y_stride = y_stride,
                .bias = bias.empty() ? nullptr : bias.data()});
    for (const uint32_t place : groups.places) {
      const auto from = y.begin() + static_cast<ptrdiff_t>(place * y_stride);
      out.insert(out.end(), from, from + static_cast<ptrdiff_t>(y_stride));
    }
    return out;
  }

  std::vector<float> one_by_one(WorkerPool& pool, std::span<const PackedMatrix> experts) const {
    std::vector<float> out(ids.size() * y_stride, 77.0f);
    for (size_t i = 0; i < ids.size(); ++i) {
      const float* row = x.data() + i / top_k * x_stride;
      const PackedMatrix& expert = experts[ids[i]];
      matmul(pool, expert,
             {.x = row,
              .rows = 1,
              .y = out.data() + i * y_stride,
              .bias = bias.empty() ? nullptr : bias.data() + ids[i] * expert.outputs()});
    }
    return out;
  }
};

}  // namespace

TEST_CASE("experts: choices are sorted by expert, and each finds its place") {
  const std::vector<uint32_t> ids{3, 1, 1, 0, 3, 0};
  const ExpertRows groups = group_by_expert(ids, 2, 5);
  CHECK(groups.offsets == std::vector<uint32_t>{0, 2, 4, 4, 6, 6});
  CHECK(groups.rows == std::vector<uint32_t>{1, 2, 0, 1, 0, 2});
  CHECK(groups.places == std::vector<uint32_t>{4, 2, 3, 0, 5, 1});
}

TEST_CASE("heads: each reads and writes its own columns, with the bits of a single product") {
  for (const CpuLevel level : cpu_levels()) {
    WorkerPool one(1, level), three(3, level);
    for (uint32_t seed = 0; seed < cases(60); ++seed) {
      CAPTURE(name(level));
      CAPTURE(seed);
      TestRandom random(seed);
      const auto heads = random_experts(random, random.size(1, 6));
      const size_t rows = random.chance(0.1) ? random.size(18, 600) : random.size(1, 17);
      const size_t x_step = heads[0].inputs() + random.size(0, 3);
      const size_t y_step = heads[0].outputs() + random.size(0, 3);
      const size_t x_stride = heads.size() * x_step, y_stride = heads.size() * y_step;
      const auto x = random.normals(rows * x_stride);
      std::vector<float> y(rows * y_stride, 77.0f), want = y;
      head_matmul(three, heads,
                  {.x = x.data(),
                   .rows = rows,
                   .x_stride = x_stride,
                   .x_step = x_step,
                   .y = y.data(),
                   .y_stride = y_stride,
                   .y_step = y_step});
      for (size_t h = 0; h < heads.size(); ++h)
        matmul(one, heads[h],
               {.x = x.data() + h * x_step,
                .rows = rows,
                .x_stride = x_stride,
                .y = want.data() + h * y_step,
                .y_stride = y_stride});
      REQUIRE(same_bits(y, want));
    }
  }
}

TEST_CASE("experts: grouped products have the bits of single ones, on any threads") {
  for (const CpuLevel level : cpu_levels()) {
    WorkerPool one(1, level);
    WorkerPool three(3, level);
    for (uint32_t seed = 0; seed < cases(60); ++seed) {
      CAPTURE(seed);
      CAPTURE(name(level));
      TestRandom random(seed);
      const std::vector<PackedMatrix> experts = random_experts(random, random.size(1, 12));
      const Grouped grouped(random, experts);
      const std::vector<float> expected = grouped.one_by_one(one, experts);
      REQUIRE(same_bits(grouped.together(one, experts), expected));
      REQUIRE(same_bits(grouped.together(three, experts), expected));
    }
  }
}

TEST_CASE("experts: rows already in order need no list, and more rows than a task has are split") {
  WorkerPool pool(2);
  TestRandom random(5);
  const std::vector<PackedMatrix> experts = random_experts(random, 3);
  const size_t inputs = experts[0].inputs(), outputs = experts[0].outputs();
  const std::vector<uint32_t> offsets{0, 700, 700, 703};
  const std::vector<float> x = random.normals(703 * inputs);
  std::vector<float> y(703 * outputs), expected(y.size());
  moe_matmul(pool, experts, {.x = x.data(), .offsets = offsets, .y = y.data()});
  matmul(pool, experts[0], {.x = x.data(), .rows = 700, .y = expected.data()});
  matmul(pool, experts[2],
         {.x = x.data() + 700 * inputs, .rows = 3, .y = expected.data() + 700 * outputs});
  CHECK(same_bits(y, expected));
}

TEST_CASE("experts: no assignment writes nothing") {
  WorkerPool pool(2);
  TestRandom random(6);
  const std::vector<PackedMatrix> experts = random_experts(random, 2);
  const std::vector<uint32_t> offsets{0, 0, 0};
  moe_matmul(pool, experts, {.offsets = offsets});
}

TEST_CASE("experts: combined rows are the weighted sums in the order of the choices") {
  for (const CpuLevel level : cpu_levels()) {
    WorkerPool pool(2, level);
    for (uint32_t seed = 0; seed < cases(20); ++seed) {
      CAPTURE(seed);
      TestRandom random(seed);
      const size_t rows = random.size(1, 17), top_k = random.size(1, 8), width = random.size(1, 70);
      std::vector<uint32_t> places(rows * top_k);
      std::iota(places.begin(), places.end(), 0u);
      std::reverse(places.begin(), places.end());
      const std::vector<float> y = random.normals(places.size() * width);
      const std::vector<float> weights = random.normals(places.size());
      std::vector<float> out(rows * width);
      std::vector<double> expected(out.size(), 0.0);
      combine_experts(pool, {.y = y.data(),
                             .places = places.data(),
                             .weights = weights.data(),
                             .rows = rows,
                             .top_k = top_k,
                             .width = width,
                             .out = out.data()});
      for (size_t i = 0; i < places.size(); ++i) {
        for (size_t c = 0; c < width; ++c) {
          expected[i / top_k * width + c] +=
              static_cast<double>(weights[i]) * static_cast<double>(y[places[i] * width + c]);
        }
      }
      CHECK(worst_error(out, expected) < 1e-5);
    }
  }
}
