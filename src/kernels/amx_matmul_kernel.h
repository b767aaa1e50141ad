// The product of many row codes with a quantized panel on AMX tiles. Only for files compiled with
// the instruction sets of CpuLevel::kAmx.
#pragma once

#include <immintrin.h>

#include "kernels/amx_tiles.h"
#include "kernels/code_layout.h"
#include "kernels/quantized_matmul_kernel.h"
#include "kernels/row_codes_kernel.h"
#include "kernels/simd_avx512.h"

namespace tandem::kernels {

/// Rows as tiles want them: code = 256 high + low, both signed bytes in column order. For each 16
/// rows and each `depth` columns, the high ones [16, depth], then the low ones.
struct ByteRows {
  static constexpr size_t kRows = kTileRows;
  static constexpr size_t kDepth = 64;  // bytes of a tile's row at most

  std::byte* bytes = nullptr;
  size_t inputs = 0;
  size_t depth = 0;

  explicit ByteRows(const MatmulTask& task)
      : bytes(reinterpret_cast<std::byte*>(task.rows.codes)),
        inputs(task.w->inputs()),
        depth(task.w->group() < kDepth ? task.w->group() : kDepth) {}

  /// High bytes of a tile; low() follows.
  std::byte* high(size_t row, size_t column) const {
    return bytes + 2 * (row / kRows * kRows * inputs + column / depth * kRows * depth);
  }
  std::byte* low(std::byte* high) const { return high + kRows * depth; }

  [[gnu::always_inline]] void store(Avx512Vec code, size_t row, size_t column) const {
    std::byte* to = high(row, column) + row % kRows * depth + column % depth;
    const __m512i ints = _mm512_cvtps_epi32(code.v);
    const __m512i top = _mm512_srai_epi32(_mm512_add_epi32(ints, _mm512_set1_epi32(128)), 8);
    const __m512i rest = _mm512_sub_epi32(ints, _mm512_slli_epi32(top, 8));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(top));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(low(to)), _mm512_cvtepi32_epi8(rest));
  }
};

/// Sums of codes are exact, so its outputs have the bits of QuantizedKernel's.
template <int kBits, CodeKind kKind>
struct AmxKernel {
  static constexpr size_t kPanel = PackedMatrix::kPanel;
  static constexpr size_t kRows = ByteRows::kRows;
  static constexpr size_t kLine = kTileLine;
  static constexpr int kFields = 8 / kBits;
  static constexpr bool kHasBiases = kKind == CodeKind::kAffine;
  static constexpr size_t kParameters = kHasBiases ? 2 : 1;  // of an output in a group

  const MatmulTask& task;
  const PackedMatrix& w = *task.w;
  const CodeLayout layout = code_layout(w);
  const ByteRows x = ByteRows(task);

  /// Tiles: 0 and 2 sums of high bytes, 1 and 3 of low ones, 4 and 5 rows, 6 weights.
  TileShapes shapes() const {
    TileShapes out = TileShapes::full();
    out.set(4, kRows, x.depth);
    out.set(5, kRows, x.depth);
    out.set(6, x.depth / 4, kLine);
    return out;
  }

  /// A panel's codes as bytes [inputs / 4, 16, 4], its scales and biases, if any, as floats
  /// [groups, kParameters, 16].
  void decode(size_t panel, std::byte* bytes, float* parameters) const {
    const std::byte* at = w.panel(panel);
    const __m512i mask = _mm512_set1_epi8(static_cast<char>((1u << kBits) - 1));
    for (size_t g = 0; g < task.groups; ++g, at += layout.group_bytes()) {
      for (size_t i = 0; i < kParameters; ++i, parameters += kPanel) {
        const auto stored =
            load_parameter<Avx512Vec, kKind>(at + i * kPanel * size_of(layout.type), layout.type);
        (kHasBiases ? stored : stored * Avx512Vec::all(0.5f)).store(parameters);
      }
      const std::byte* step = at + layout.header_bytes();
      for (size_t c = 0; c < layout.group; c += 4 * kFields, step += kLine) {
        const __m512i words = _mm512_loadu_si512(step);
#pragma GCC unroll 4
        for (int field = 0; field < kFields; ++field, bytes += kLine) {
          const __m512i codes = _mm512_and_si512(_mm512_srli_epi32(words, field * kBits), mask);
          _mm512_storeu_si512(bytes, kHasBiases ? codes : Avx512Vec::doubled_e2m1(codes));
        }
      }
    }
  }

  /// Sums over a group of sixteen rows: of high bytes, then of low ones, [16, 16] each.
  struct alignas(64) Sums {
    int32_t high[kRows * kPanel], low[kRows * kPanel];
  };

  /// Sums of tiles kHigh and kHigh + 1: even and odd groups have tiles of their own.
  template <int kHigh>
  [[gnu::always_inline]] void multiply(size_t row,
                                       size_t group,
                                       const std::byte* weights,
                                       Sums& sums) const {
    zero_tile<kHigh>();
    zero_tile<kHigh + 1>();
    for (size_t c = group * layout.group; c < (group + 1) * layout.group; c += x.depth) {
      const std::byte* high = x.high(row, c);
      load_tile<6>(weights + c * kPanel);
      load_tile<4>(high, x.depth);
      add_byte_products<kHigh, 4, 6, !kHasBiases>();
      load_tile<5>(high + kRows * x.depth, x.depth);
      add_byte_products<kHigh + 1, 5, 6, !kHasBiases>();
    }
    store_tile<kHigh>(sums.high);
    store_tile<kHigh + 1>(sums.low);
  }

  [[gnu::always_inline]] void close(const Sums& sums,
                                    size_t row,
                                    size_t group,
                                    const float* parameters,
                                    Avx512Vec (&y)[kRows]) const {
    parameters += kParameters * kPanel * group;
    const Avx512Vec scale = Avx512Vec::load(parameters);
    const Avx512Vec bias = kHasBiases ? Avx512Vec::load(parameters + kPanel) : Avx512Vec::zero();
    const size_t of = row * task.groups + group;
    const float* row_scale = task.rows.scales + of;
    const float* row_sum = task.rows.sums + of;
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r, row_scale += task.groups, row_sum += task.groups) {
      const __m512i high = _mm512_slli_epi32(_mm512_load_si512(sums.high + r * kPanel), 8);
      const Avx512Vec::Ints sum{_mm512_add_epi32(high, _mm512_load_si512(sums.low + r * kPanel))};
      y[r] = kHasBiases ? close_group(y[r], sum, scale, bias, *row_scale, *row_sum)
                        : close_group(y[r], sum, scale, *row_scale);
    }
  }

  /// Sixteen rows of the padded codes, of which `rows` exist. Tiles run some groups ahead of the
  /// vectors that close them: a tile's way through memory takes longer than either's work.
  void multiply_tile(size_t row,
                     size_t rows,
                     size_t panel,
                     const std::byte* weights,
                     const float* parameters) const {
    constexpr size_t kAhead = 8;
    Sums sums[kAhead];
    Avx512Vec y[kRows];
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) y[r] = Avx512Vec::zero();
    for (size_t first = 0; first < task.groups; first += kAhead) {
      const size_t left = task.groups - first, count = left < kAhead ? left : kAhead;
      for (size_t g = 0; g < count; g += 2) {
        multiply<0>(row, first + g, weights, sums[g]);
        if (g + 1 < count) multiply<2>(row, first + g + 1, weights, sums[g + 1]);
      }
      for (size_t g = 0; g < count; ++g) close(sums[g], row, first + g, parameters, y);
    }
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
      if (r < rows) put_panel<Avx512Vec>(task, row + r, panel, {y[r]});
    }
  }

  /// Scratch: floats for scales and biases, then bytes.
  void run(size_t row, size_t rows, size_t panel, size_t panels, float* scratch) const {
    float* parameters = scratch;
    auto* weights = reinterpret_cast<std::byte*>(scratch + kParameters * kPanel * task.groups);
    const TileScope tiles(shapes());
    for (size_t p = panel; p < panel + panels; ++p) {
      decode(p, weights, parameters);
      for (size_t r = 0; r < rows; r += kRows)
        multiply_tile(row + r, rows - r, p, weights, parameters);
    }
  }
};

}  // namespace tandem::kernels
