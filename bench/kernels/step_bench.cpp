// Limits of the machine, and the small operations of a step.
#include <fmt/format.h>

#include <cstdint>

#include "kernels/activation.h"
#include "kernels/benches.h"
#include "kernels/norm.h"
#include "kernels/rope.h"

namespace tandem::bench {
namespace {

using Lanes = uint64_t __attribute__((vector_size(32)));

/// Keeps a value from being optimised away.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "m"(value) : "memory");
}

void print(const char* what, double seconds, double bytes) {
  fmt::print("{:34} {:9.2f} us {:6.1f} GB/s\n", what, seconds * 1e6, bytes / seconds / 1e9);
}

}  // namespace

void bench_limits(const Settings& settings, kernels::WorkerPool& pool) {
  std::vector<uint64_t> memory((size_t{128} << 20) / 8, 1);
  const auto read = [&] {
    pool.parallel_for(memory.size() / 32, [&](size_t begin, size_t end) {
      Lanes sums[8] = {};
      for (size_t i = begin; i < end; ++i) {
        const auto* at = reinterpret_cast<const Lanes*>(memory.data() + i * 32);
        for (size_t j = 0; j < 8; ++j) {
          Lanes value;
          __builtin_memcpy(&value, at + j, sizeof(value));
          sums[j] ^= value;
        }
      }
      keep(sums);
    });
  };
  const std::vector<double> seconds = medians(settings, {read});
  print("memory read", seconds[0], static_cast<double>(memory.size() * 8));
}

void bench_small(const Settings& settings, kernels::WorkerPool& pool) {
  print("dispatch",
        medians(settings, {[&] { pool.parallel_for(pool.threads(), [](size_t, size_t) {}); }})[0],
        0);
  for (const size_t rows : {1u, 8u, 512u}) {
    const size_t hidden = 576, inner = 1536, heads = 9, dim = 64;
    std::vector<float> x(rows * hidden, 0.5f), out(rows * hidden), weight(hidden, 1);
    std::vector<float> gate(rows * inner * 2, 0.3f), act(rows * inner);
    std::vector<uint32_t> positions(rows, 1000);
    std::vector<float> frequencies(dim / 2, 0.01f), cosine(rows * dim / 2), sine(rows * dim / 2);
    kernels::rope_table(pool, positions.data(), rows, frequencies.data(), dim / 2, cosine.data(),
                        sine.data());
    kernels::RopeArgs rope{.x = x.data(), .tokens = rows, .heads = heads, .head_dim = dim};
    rope.pairs = dim / 2;
    rope.cosine = cosine.data();
    rope.sine = sine.data();
    const auto seconds = medians(settings, {
                                               [&] {
                                                 kernels::rms_norm(pool, {.x = x.data(),
                                                                          .rows = rows,
                                                                          .width = hidden,
                                                                          .weight = weight.data(),
                                                                          .out = out.data()});
                                               },
                                               [&] { kernels::rope(pool, rope); },
                                               [&] {
                                                 kernels::swiglu(pool, {.gate = gate.data(),
                                                                        .up = gate.data() + inner,
                                                                        .out = act.data(),
                                                                        .rows = rows,
                                                                        .width = inner,
                                                                        .gate_stride = 2 * inner,
                                                                        .up_stride = 2 * inner});
                                               },
                                               [&] {
                                                 kernels::rope_table(pool, positions.data(), rows,
                                                                     frequencies.data(), dim / 2,
                                                                     cosine.data(), sine.data());
                                               },
                                           });
    const double n = static_cast<double>(rows) * 4;
    print(fmt::format("rms_norm {} x 576", rows).c_str(), seconds[0], n * 576 * 2);
    print(fmt::format("rope {} x 9 x 64", rows).c_str(), seconds[1], n * 576 * 2);
    print(fmt::format("swiglu {} x 1536", rows).c_str(), seconds[2], n * 1536 * 3);
    print(fmt::format("rope_table {} x 32", rows).c_str(), seconds[3], n * 64);
  }
}

}  // namespace tandem::bench
