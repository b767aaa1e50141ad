// The product of row codes with the codes of a panel, for any vector type.
#pragma once

#include <utility>

#include "kernels/code_layout.h"
#include "kernels/matmul_outputs.h"

namespace tandem::kernels {

/// y = scale * (row scale * sum of code products) + y, then y = bias * (sum of x) + y: a group's
/// share of an output, in the one order that all paths and levels keep.
template <class V>
[[gnu::always_inline]] inline V close_group(
    V y, V sum, V scale, V bias, float row_scale, float row_sum) {
  y = V::fma(scale, sum * V::all(row_scale), y);
  return V::fma(bias, V::all(row_sum), y);
}
template <class V>
[[gnu::always_inline]] inline V close_group(
    V y, typename V::Ints sum, V scale, V bias, float row_scale, float row_sum) {
  return close_group(y, sum.to_floats(), scale, bias, row_scale, row_sum);
}

/// The same without biases, of codes that are floats.
template <class V>
[[gnu::always_inline]] inline V close_group(V y, V sum, V scale, float row_scale) {
  return V::fma(scale, sum * V::all(row_scale), y);
}
template <class V>
[[gnu::always_inline]] inline V close_group(V y, typename V::Ints sum, V scale, float row_scale) {
  return close_group(y, sum.to_floats(), scale, row_scale);
}

template <class V, int kBits, CodeKind kKind>
struct QuantizedKernel {
  using Ints = typename V::Ints;
  static constexpr int kVecs = kPanelVecs<V>;
  static constexpr int kPairs = 16 / kBits;  // pairs of columns in a step
  static constexpr size_t kStep = 64;        // its bytes
  static constexpr size_t kPanel = PackedMatrix::kPanel;

  const MatmulTask& task;
  const PackedMatrix& w = *task.w;
  const CodeLayout layout = code_layout(w);
  const size_t scalar_bytes = size_of(layout.type);
  const size_t header_bytes = layout.header_bytes();
  const size_t group_bytes = layout.group_bytes();
  const size_t inputs = w.inputs();
  const size_t groups = task.groups;

  const int16_t* codes(size_t row, size_t column) const {
    return task.rows.codes + row * inputs + column;
  }
  /// Scales (index below kVecs) or biases of a group, as stored.
  V parameter(const std::byte* group, int index) const {
    const size_t value = static_cast<size_t>(index) * V::kLanes;
    return load_parameter<V, kKind>(group + value * scalar_bytes, layout.type);
  }

  /// Codes of pair kPair of a step as integers: those of E2M1 count halves.
  template <int kPair>
  [[gnu::always_inline]] static Ints field(typename V::Words words) {
    if constexpr (kKind == CodeKind::kE2m1)
      return Ints::template signed_bytes<kPair % 2>(V::template doubled_e2m1<kPair / 2>(words));
    else
      return Ints::template codes<kBits, kPair>(words);
  }

  /// Of a group: what its sums are multiplied by, and, of affine codes, what is added.
  [[gnu::always_inline]] V scale_of(const std::byte* group, int v) const {
    const V stored = parameter(group, v);
    return kKind == CodeKind::kAffine ? stored : stored * V::all(0.5f);
  }
  [[gnu::always_inline]] V bias_of(const std::byte* group, int v) const {
    return kKind == CodeKind::kAffine ? parameter(group, kVecs + v) : V::zero();
  }
  [[gnu::always_inline]] static V close(
      V y, Ints sum, V scale, V bias, float row_scale, float row_sum) {
    if constexpr (kKind == CodeKind::kAffine)
      return close_group(y, sum, scale, bias, row_scale, row_sum);
    else
      return close_group(y, sum, scale, row_scale);
  }

  template <int... kPair, class F>
  [[gnu::always_inline]] static void each_pair(std::integer_sequence<int, kPair...>, F f) {
    (f(std::integral_constant<int, kPair>()), ...);
  }

  /// Adds one group of kRows rows by kPanels panels; x points at the rows' codes of the group.
  template <int kRows, int kPanels>
  [[gnu::always_inline]] void add_group(const std::byte* const (&at)[kPanels],
                                        const int16_t* const (&x)[kRows],
                                        Ints (&sums)[kRows][kPanels * kVecs]) const {
    for (size_t k = 0; k < layout.group; k += 2 * kPairs) {
      typename V::Words words[kPanels * kVecs];
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) {
        const std::byte* step = at[p] + header_bytes + k / (2 * kPairs) * kStep;
#pragma GCC unroll 2
        for (int v = 0; v < kVecs; ++v) {
          words[p * kVecs + v] =
              V::load_words(step + static_cast<size_t>(v) * (kStep / size_t{kVecs}));
        }
      }
      each_pair(std::make_integer_sequence<int, kPairs>(),
                [&](auto pair) __attribute__((always_inline)) {
                  Ints fields[kPanels * kVecs];
#pragma GCC unroll 8
                  for (int i = 0; i < kPanels * kVecs; ++i) fields[i] = field<pair()>(words[i]);
#pragma GCC unroll 8
                  for (int r = 0; r < kRows; ++r) {
                    const Ints factor = Ints::pair(x[r] + k + 2 * pair());
#pragma GCC unroll 8
                    for (int i = 0; i < kPanels * kVecs; ++i)
                      sums[r][i] = Ints::dot(sums[r][i], fields[i], factor);
                  }
                });
    }
  }

  template <int kRows, int kPanels>
  void direct(size_t row, size_t panel) const {
    V y[kRows][kPanels][kVecs];
    const std::byte* at[kPanels];
    const int16_t* x[kRows];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) at[p] = w.panel(panel + static_cast<size_t>(p));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      x[r] = codes(row + static_cast<size_t>(r), 0);
#pragma GCC unroll 8
      for (int i = 0; i < kPanels * kVecs; ++i) y[r][i / kVecs][i % kVecs] = V::zero();
    }
    for (size_t g = 0; g < groups; ++g) {
      Ints sums[kRows][kPanels * kVecs];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
        for (int i = 0; i < kPanels * kVecs; ++i) sums[r][i] = Ints::zero();
      }
      add_group<kRows, kPanels>(at, x, sums);
#pragma GCC unroll 8
      for (int i = 0; i < kPanels * kVecs; ++i) {
        const V scale = scale_of(at[i / kVecs], i % kVecs);
        const V bias = bias_of(at[i / kVecs], i % kVecs);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const size_t of = (row + static_cast<size_t>(r)) * groups + g;
          V& sum = y[r][i / kVecs][i % kVecs];
          sum = close(sum, sums[r][i], scale, bias, task.rows.scales[of], task.rows.sums[of]);
        }
      }
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) at[p] += group_bytes;
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) x[r] += layout.group;
    }
    for (int r = 0; r < kRows; ++r) {
      for (int p = 0; p < kPanels; ++p)
        put_panel(task, row + static_cast<size_t>(r), panel + static_cast<size_t>(p), y[r][p]);
    }
  }

  /// Panels that are worth taking together: enough sums to hide the latency of their additions,
  /// few enough for the registers.
  static constexpr int panels_together(int rows) {
    if (kVecs > 1) return rows == 1 ? 2 : 1;
    return rows <= 2 ? 4 : rows <= 4 ? 2 : 1;
  }

  /// Panel by panel, so that codes are read from memory once; a few rows at a time.
  void run(size_t row, size_t rows, size_t panel, size_t panels, float* /*scratch*/) const {
    const size_t end = panel + panels;
    if (rows <= Ints::kTileRows) {
      with_count<Ints::kTileRows>(rows, [&](auto count) {
        constexpr int kTogether = panels_together(count());
        for (; panel + kTogether <= end; panel += kTogether) direct<count(), kTogether>(row, panel);
      });
    }
    for (; panel < end; ++panel) {
      for_tiles<Ints::kTileRows>(
          row, rows, [&](size_t first, auto count) { direct<count(), 1>(first, panel); });
    }
  }
};

}  // namespace tandem::kernels
