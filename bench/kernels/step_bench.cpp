// Limits of the machine, attention, and the small operations of a step.
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <numeric>

#include "kernels/activation.h"
#include "kernels/attention.h"
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

void bench_attention(const Settings& settings, kernels::WorkerPool& pool) {
  struct Shape {
    size_t heads, kv_heads, dim;
  };
  struct Load {
    size_t rows, fresh, context;
  };
  for (const Shape shape : {Shape{9, 3, 64}, Shape{16, 8, 128}}) {
    for (const Load load : {Load{1, 1, 512}, Load{1, 1, 2048}, Load{1, 1, 16384}, Load{8, 1, 2048},
                            Load{1, 512, 512}, Load{1, 512, 4096}}) {
      const size_t page = 16, width = shape.kv_heads * shape.dim,
                   pages = (load.context + page - 1) / page;
      std::vector<float> k(pages * page * width, 0.1f), v = k;
      std::vector<uint32_t> table(pages), kv_of(shape.heads);
      std::iota(table.begin(), table.end(), 0u);
      for (uint32_t h = 0; h < shape.heads; ++h)
        kv_of[h] = h * static_cast<uint32_t>(shape.kv_heads) / static_cast<uint32_t>(shape.heads);
      std::vector<float> q(load.rows * load.fresh * shape.heads * shape.dim, 0.1f), out = q;
      std::vector<kernels::AttentionRow> rows;
      for (size_t r = 0; r < load.rows; ++r) {
        rows.push_back({.first_token = r * load.fresh,
                        .count = load.fresh,
                        .start = load.context - load.fresh,
                        .pages = table.data()});
      }
      kernels::AttentionArgs args{
          .q = q.data(), .out = out.data(), .k_pool = k.data(), .v_pool = v.data()};
      args.page_tokens = page;
      args.heads = shape.heads;
      args.kv_heads = shape.kv_heads;
      args.head_dim = shape.dim;
      args.kv_head_of = kv_of.data();
      args.rows = rows;
      args.scale = 1.0f / std::sqrt(static_cast<float>(shape.dim));
      const double seconds = medians(settings, {[&] { kernels::attention(pool, args); }})[0];
      const double seen =
          static_cast<double>(load.context) - static_cast<double>(load.fresh - 1) / 2;
      const double pairs = static_cast<double>(load.rows * load.fresh) * seen;
      fmt::print(
          "attention {}/{}x{} rows {} new {:3} context {:5}: {:9.1f} us {:6.1f} GB/s {:6.1f} "
          "GFLOP/s\n",
          shape.heads, shape.kv_heads, shape.dim, load.rows, load.fresh, load.context,
          seconds * 1e6, static_cast<double>(load.rows * load.context * width * 8) / seconds / 1e9,
          pairs * static_cast<double>(shape.heads * shape.dim) * 4 / seconds / 1e9);
    }
  }
}

}  // namespace tandem::bench
