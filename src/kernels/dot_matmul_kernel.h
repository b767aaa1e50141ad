// The product of row codes with a quantized panel by NEON's dot products of four bytes. Only for
// files compiled for CpuLevel::kNeonDot.
#pragma once

#include <arm_neon.h>

#include "kernels/code_layout.h"
#include "kernels/matmul_outputs.h"
#include "kernels/quantized_matmul_kernel.h"
#include "kernels/simd_neon.h"

namespace tandem::kernels {

/// Rows as dot products want them: code = 256 high + low, both signed bytes in column order; of
/// each row first all high ones, then all low ones. They take the place of the task's 16-bit codes.
struct SplitRows {
  std::byte* bytes = nullptr;
  size_t inputs = 0;

  explicit SplitRows(const MatmulTask& task)
      : bytes(reinterpret_cast<std::byte*>(task.rows.codes)), inputs(task.w->inputs()) {}

  /// High bytes of a row; its low ones follow `inputs` bytes later.
  std::byte* row(size_t index) const { return bytes + index * 2 * inputs; }

  [[gnu::always_inline]] void store(NeonVec code, size_t index, size_t column) const {
    auto* to = reinterpret_cast<int8_t*>(row(index) + column);
    const int16x8_t codes =
        vcombine_s16(vmovn_s32(vcvtnq_s32_f32(code.low)), vmovn_s32(vcvtnq_s32_f32(code.high)));
    vst1_s8(to, vshrn_n_s16(vaddq_s16(codes, vdupq_n_s16(128)), 8));
    vst1_s8(to + inputs, vmovn_s16(codes));  // a code's low byte, taken as signed
  }
};

/// Sums of codes are exact, so its outputs have the bits of QuantizedKernel's.
template <int kBits, CodeKind kKind>
struct DotKernel {
  static constexpr size_t kPanel = PackedMatrix::kPanel;
  static constexpr int kQuads = 4;           // vectors of four outputs
  static constexpr int kFields = 8 / kBits;  // bytes of four columns each, in a word
  static constexpr int kTileRows = 3;
  static constexpr bool kHasBiases = kKind == CodeKind::kAffine;

  /// Sums over a group of one row's bytes.
  struct Sums {
    int32x4_t high[kQuads], low[kQuads];
  };

  const MatmulTask& task;
  const PackedMatrix& w = *task.w;
  const CodeLayout layout = code_layout(w);
  const SplitRows x = SplitRows(task);

  /// Signed bytes of four columns: 8-bit codes less 128, those of E2M1 in halves, others as they
  /// are.
  template <int kField>
  [[gnu::always_inline]] static int8x16_t field(uint8x16_t words) {
    if constexpr (kBits == 8) return vreinterpretq_s8_u8(veorq_u8(words, vdupq_n_u8(128)));
    if constexpr (kField > 0) words = vshrq_n_u8(words, kField * kBits);
    if constexpr (kField + 1 < kFields) words = vandq_u8(words, vdupq_n_u8((1 << kBits) - 1));
    if constexpr (kKind == CodeKind::kE2m1) return vqtbl1q_s8(vld1q_s8(kDoubledE2m1), words);
    return vreinterpretq_s8_u8(words);
  }

  /// Four bytes of a row in every lane.
  [[gnu::always_inline]] static int8x16_t spread(const std::byte* p) {
    return vreinterpretq_s8_s32(vld1q_dup_s32(reinterpret_cast<const int32_t*>(p)));
  }

  template <int kRows, int kField>
  [[gnu::always_inline]] void add_field(const uint8x16_t (&words)[kQuads],
                                        const std::byte* const (&rows)[kRows],
                                        size_t column,
                                        Sums (&sums)[kRows]) const {
    int8x16_t weights[kQuads];
#pragma GCC unroll 4
    for (int q = 0; q < kQuads; ++q) weights[q] = field<kField>(words[q]);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const int8x16_t high = spread(rows[r] + column);
      const int8x16_t low = spread(rows[r] + column + x.inputs);
#pragma GCC unroll 4
      for (int q = 0; q < kQuads; ++q) {
        sums[r].high[q] = vdotq_s32(sums[r].high[q], weights[q], high);
        sums[r].low[q] = vdotq_s32(sums[r].low[q], weights[q], low);
      }
    }
  }

  template <int kRows, int... kField>
  [[gnu::always_inline]] void add_step(std::integer_sequence<int, kField...>,
                                       const std::byte* step,
                                       const std::byte* const (&rows)[kRows],
                                       size_t column,
                                       Sums (&sums)[kRows]) const {
    uint8x16_t words[kQuads];
#pragma GCC unroll 4
    for (int q = 0; q < kQuads; ++q)
      words[q] = vld1q_u8(reinterpret_cast<const uint8_t*>(step) + 16 * q);
    (add_field<kRows, kField>(words, rows, column + 4 * kField, sums), ...);
  }

  /// The sums that a group starts from: what 8-bit codes were lessened by, times the row.
  [[gnu::always_inline]] Sums first_sums(const std::byte* row, size_t column) const {
    Sums out;
    int32x4_t high = vdupq_n_s32(0), low = high;
    if constexpr (kBits == 8) {
      const auto* from = reinterpret_cast<const int8_t*>(row + column);
      for (size_t k = 0; k < layout.group; k += 16) {
        high = vdotq_s32(high, vld1q_s8(from + k), vdupq_n_s8(1));
        low = vdotq_s32(low, vld1q_s8(from + k + x.inputs), vdupq_n_s8(1));
      }
      high = vdupq_n_s32(vaddvq_s32(high) * 128);
      low = vdupq_n_s32(vaddvq_s32(low) * 128);
    }
#pragma GCC unroll 4
    for (int q = 0; q < kQuads; ++q) {
      out.high[q] = high;
      out.low[q] = low;
    }
    return out;
  }

  [[gnu::always_inline]] static NeonVec to_floats(const Sums& sums, int half) {
    const auto whole = [&](int q) __attribute__((always_inline)) {
      return vcvtq_f32_s32(vaddq_s32(vshlq_n_s32(sums.high[q], 8), sums.low[q]));
    };
    return {whole(2 * half), whole(2 * half + 1)};
  }

  template <int kRows>
  void multiply(size_t row, size_t panel) const {
    NeonVec y[kRows][2];
    const std::byte* rows[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      y[r][0] = y[r][1] = NeonVec::zero();
      rows[r] = x.row(row + static_cast<size_t>(r));
    }
    const std::byte* at = w.panel(panel);
    for (size_t g = 0; g < task.groups; ++g, at += layout.group_bytes()) {
      Sums sums[kRows];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sums[r] = first_sums(rows[r], g * layout.group);
      const std::byte* step = at + layout.header_bytes();
      for (size_t k = 0; k < layout.group; k += 4 * kFields, step += 4 * kPanel)
        add_step(std::make_integer_sequence<int, kFields>(), step, rows, g * layout.group + k,
                 sums);
      close<kRows>(at, row, g, sums, y);
    }
    for (int r = 0; r < kRows; ++r) put_panel(task, row + static_cast<size_t>(r), panel, y[r]);
  }

  template <int kRows>
  [[gnu::always_inline]] void close(const std::byte* at,
                                    size_t row,
                                    size_t group,
                                    const Sums (&sums)[kRows],
                                    NeonVec (&y)[kRows][2]) const {
    const size_t bytes = NeonVec::kLanes * size_of(layout.type);
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      const NeonVec stored = load_parameter<NeonVec, kKind>(at + half * bytes, layout.type);
      const NeonVec scale = kHasBiases ? stored : stored * NeonVec::all(0.5f);
      const NeonVec bias =
          kHasBiases ? NeonVec::load(at + (2 + half) * bytes, layout.type) : NeonVec::zero();
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const size_t of = (row + static_cast<size_t>(r)) * task.groups + group;
        const NeonVec sum = to_floats(sums[r], static_cast<int>(half));
        y[r][half] = kHasBiases ? close_group(y[r][half], sum, scale, bias, task.rows.scales[of],
                                              task.rows.sums[of])
                                : close_group(y[r][half], sum, scale, task.rows.scales[of]);
      }
    }
  }

  void run(size_t row, size_t rows, size_t panel, size_t panels, float* /*scratch*/) const {
    for (const size_t end = panel + panels; panel < end; ++panel) {
      for_tiles<kTileRows>(row, rows,
                           [&](size_t first, auto count) { multiply<count()>(first, panel); });
    }
  }
};

}  // namespace tandem::kernels
