// Products of the default model's shapes and of a larger model's.
#include <fmt/format.h>

#include <cstdint>

#include "kernels/benches.h"
#include "kernels/matmul.h"
#include "kernels/onednn_matmul.h"

namespace tandem::bench {
namespace {

using kernels::PackedMatrix;
using kernels::ScalarType;

struct Shape {
  const char* name;
  size_t outputs, inputs;
  uint32_t bits;  // 0: dense
  uint32_t group;
  ScalarType type;
  kernels::CodeKind kind = kernels::CodeKind::kAffine;
};

constexpr Shape kShapes[] = {
    {"gate_up q4", 3072, 576, 4, 32, ScalarType::kF16},
    {"down q4", 576, 1536, 4, 32, ScalarType::kF16},
    {"head q8", 49152, 576, 8, 64, ScalarType::kBf16},
    {"1.7B gate_up q4", 12288, 2048, 4, 64, ScalarType::kBf16},
    {"20B experts mxfp4", 5760, 2880, 4, 32, ScalarType::kE8m0, kernels::CodeKind::kE2m1},
    {"same in mxfp8", 5760, 2880, 8, 32, ScalarType::kE8m0, kernels::CodeKind::kE4m3},
    {"same in q4", 5760, 2880, 4, 32, ScalarType::kBf16},
    {"dense bf16", 8192, 2048, 0, 0, ScalarType::kBf16},
    {"dense f16", 8192, 2048, 0, 0, ScalarType::kF16},
    {"dense f32", 8192, 2048, 0, 0, ScalarType::kF32},
};

/// Any bytes will do: 0x3c3c is a small number in every type.
PackedMatrix make(const Shape& shape) {
  const std::vector<uint8_t> bytes(shape.outputs * shape.inputs * 4, 0x3c);
  if (shape.bits == 0) {
    return std::move(*PackedMatrix::from_dense(
        {.data = bytes.data(), .type = shape.type, .rows = shape.outputs, .cols = shape.inputs}));
  }
  kernels::QuantizedView view{
      .codes = bytes.data(), .scales = bytes.data(), .biases = bytes.data()};
  view.scale_type = shape.type;
  view.rows = shape.outputs;
  view.cols = shape.inputs;
  view.bits = shape.bits;
  view.group = shape.group;
  view.kind = shape.kind;
  return std::move(*PackedMatrix::from_quantized(view));
}

void bench_rows(const Settings& settings,
                kernels::WorkerPool& pool,
                const Shape& shape,
                const std::vector<PackedMatrix>& copies,
                size_t rows,
                bool compare) {
  std::vector<float> x(rows * shape.inputs, 0.25f), y(rows * shape.outputs);
  size_t next = 0;
  std::vector<std::function<void()>> functions{[&] {
    // Copies are used in turn so that weights come from memory, as in a model's step.
    const PackedMatrix& w = copies[next++ % copies.size()];
    kernels::matmul(pool, w, {.x = x.data(), .rows = rows, .y = y.data()});
  }};
  std::vector<float> other(y.size());
  if (compare) {
    auto peer = onednn_matmul(settings.threads, rows, shape.outputs, shape.inputs, x, other);
    if (peer) functions.push_back(std::move(peer));
  }
  const std::vector<double> seconds = medians(settings, functions);
  const double flops = 2.0 * static_cast<double>(rows * shape.outputs * shape.inputs);
  fmt::print("{:16} rows {:4}: {:9.1f} us {:6.1f} GB/s {:7.1f} GFLOP/s", shape.name, rows,
             seconds[0] * 1e6, static_cast<double>(copies[0].bytes()) / seconds[0] / 1e9,
             flops / seconds[0] / 1e9);
  if (seconds.size() > 1) {
    fmt::print("   oneDNN f32 {:7.1f} GFLOP/s, ratio {:.2f}", flops / seconds[1] / 1e9,
               seconds[1] / seconds[0]);
  }
  fmt::print("\n");
}

}  // namespace

void bench_matmul(const Settings& settings, kernels::WorkerPool& pool) {
  for (const Shape& shape : kShapes) {
    if (std::string(shape.name).find(settings.shape) == std::string::npos) continue;
    constexpr size_t kBytes = 96u << 20;  // more than the last cache
    std::vector<PackedMatrix> copies;
    copies.push_back(make(shape));
    while (copies.size() * copies[0].bytes() < kBytes) copies.push_back(make(shape));
    if (settings.tokens != 0) {
      bench_rows(settings, pool, shape, copies, settings.tokens, false);
      continue;
    }
    for (const size_t rows : {1u, 2u, 4u, 8u, 16u, 128u, 512u}) {
      if (rows > 16 && shape.outputs > 20000) continue;
      bench_rows(settings, pool, shape, copies, rows, rows >= 128);
    }
  }
}

}  // namespace tandem::bench
