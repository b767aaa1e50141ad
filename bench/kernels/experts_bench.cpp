// Grouped products of a mixture of experts: the shapes of a Qwen3-30B-A3B layer, whole and as the
// ranks of a tensor split have them.
#include <fmt/format.h>

#include <numeric>
#include <random>

#include "kernels/activation.h"
#include "kernels/benches.h"
#include "kernels/grouped_matmul.h"

namespace tandem::bench {
namespace {

using kernels::ExpertRows;
using kernels::PackedMatrix;

constexpr size_t kExperts = 128, kActive = 8, kHidden = 2048;

/// One matrix for each expert: 4-bit codes in groups of 64, all bytes alike.
std::vector<PackedMatrix> expert_matrices(size_t outputs, size_t inputs) {
  const std::vector<uint8_t> bytes(outputs * inputs / 2, 0x3c);
  kernels::QuantizedView view{
      .codes = bytes.data(), .scales = bytes.data(), .biases = bytes.data()};
  view.scale_type = kernels::ScalarType::kBf16;
  view.rows = outputs;
  view.cols = inputs;
  std::vector<PackedMatrix> out;
  for (size_t e = 0; e < kExperts; ++e)
    out.push_back(std::move(*PackedMatrix::from_quantized(view)));
  return out;
}

/// Random choices for a few steps of `rows` rows, so that weights come from memory.
std::vector<ExpertRows> random_steps(size_t rows) {
  std::mt19937 random(static_cast<uint32_t>(rows));
  std::vector<uint32_t> all(kExperts);
  std::iota(all.begin(), all.end(), 0u);
  std::vector<ExpertRows> out;
  for (size_t step = 0; step < 16; ++step) {
    std::vector<uint32_t> ids;
    for (size_t r = 0; r < rows; ++r) {
      std::shuffle(all.begin(), all.end(), random);
      ids.insert(ids.end(), all.begin(), all.begin() + kActive);
    }
    out.push_back(kernels::group_by_expert(ids, kActive, kExperts));
  }
  return out;
}

/// Bytes of the weights that the steps use, on average.
double active_bytes(const std::vector<ExpertRows>& steps, size_t bytes_an_expert) {
  size_t used = 0;
  for (const ExpertRows& step : steps) {
    for (size_t e = 0; e < kExperts; ++e) used += step.offsets[e] < step.offsets[e + 1];
  }
  return static_cast<double>(used * bytes_an_expert) / static_cast<double>(steps.size());
}

void bench_width(const Settings& settings, kernels::WorkerPool& pool, size_t inner_width) {
  const std::vector<PackedMatrix> gate_up = expert_matrices(2 * inner_width, kHidden);
  const std::vector<PackedMatrix> down = expert_matrices(kHidden, inner_width);
  for (const size_t rows : {1u, 4u, 16u, 128u}) {
    const std::vector<ExpertRows> steps = random_steps(rows);
    const size_t count = rows * kActive;
    const std::vector<float> x(rows * kHidden, 0.25f), weights(count, 0.125f);
    std::vector<float> inner(count * 2 * inner_width), act(count * inner_width), y(count * kHidden);
    std::vector<float> out(rows * kHidden);
    size_t next = 0;
    const double seconds =
        medians(settings, {[&] {
                  const ExpertRows& step = steps[next++ % steps.size()];
                  kernels::moe_matmul(pool, gate_up,
                                      {.x = x.data(),
                                       .offsets = step.offsets,
                                       .x_rows = step.rows.data(),
                                       .y = inner.data()});
                  kernels::swiglu(pool, {.gate = inner.data(),
                                         .up = inner.data() + inner_width,
                                         .out = act.data(),
                                         .rows = count,
                                         .width = inner_width,
                                         .gate_stride = 2 * inner_width,
                                         .up_stride = 2 * inner_width});
                  kernels::moe_matmul(pool, down,
                                      {.x = act.data(), .offsets = step.offsets, .y = y.data()});
                  kernels::combine_experts(pool, {.y = y.data(),
                                                  .places = step.places.data(),
                                                  .weights = weights.data(),
                                                  .rows = rows,
                                                  .top_k = kActive,
                                                  .width = kHidden,
                                                  .out = out.data()});
                }})[0];
    const double bytes = active_bytes(steps, gate_up[0].bytes() + down[0].bytes());
    const double flops = 2.0 * static_cast<double>(count * 3 * kHidden * inner_width);
    fmt::print("30B-A3B experts q4 width {:3} rows {:4}: {:9.1f} us {:6.1f} GB/s {:7.1f} GFLOP/s\n",
               inner_width, rows, seconds * 1e6, bytes / seconds / 1e9, flops / seconds / 1e9);
  }
}

}  // namespace

void bench_experts(const Settings& settings, kernels::WorkerPool& pool) {
  for (const size_t width : {768U, 384U, 192U, 64U}) bench_width(settings, pool, width);
}

}  // namespace tandem::bench
