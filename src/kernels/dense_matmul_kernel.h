// The product of float32 rows with a panel in floats, for any vector type.
#pragma once

#include "kernels/matmul_outputs.h"
#include "kernels/panel_format.h"

namespace tandem::kernels {

/// An output is the sum over columns in order, each added by one fused multiply-add.
template <class V, class Format>
struct DenseKernel {
  static constexpr int kVecs = kPanelVecs<V>;
  static constexpr size_t kPanel = PackedMatrix::kPanel;
  static constexpr size_t kDirectRows = 18;  // up to here weights go straight to registers

  const MatmulTask& task;
  const PackedMatrix& w = *task.w;
  const Format format = Format(w);

  const float* x(size_t row, size_t column) const {
    return task.args.x + row * task.args.x_stride + column;
  }

  template <int kRows, int kPanels>
  [[gnu::always_inline]] void add_step(const std::byte* const (&panels)[kPanels],
                                       const float* const (&rows)[kRows],
                                       size_t column,
                                       size_t valid,
                                       V (&sums)[kPanels][kRows][kVecs]) const {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) {
        format.visit(panels[p], column, static_cast<size_t>(v),
                     [&](size_t c, V value) __attribute__((always_inline)) {
                       if (c >= valid) return;
#pragma GCC unroll 16
                       for (int r = 0; r < kRows; ++r)
                         sums[p][r][v] = V::fma(V::all(rows[r][column + c]), value, sums[p][r][v]);
                     });
      }
    }
  }

  /// A few rows: weights become floats in registers only.
  template <int kRows, int kPanels>
  void direct(size_t row, size_t panel) const {
    V sums[kPanels][kRows][kVecs];
    const float* rows[kRows];
    const std::byte* at[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      at[p] = w.panel(panel + static_cast<size_t>(p));
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVecs; ++v) sums[p][r][v] = V::zero();
      }
    }
    for (int r = 0; r < kRows; ++r) rows[r] = x(row + static_cast<size_t>(r), 0);
    size_t k = 0;
    for (; k + Format::kColumns <= w.inputs(); k += Format::kColumns)
      add_step<kRows, kPanels>(at, rows, k, Format::kColumns, sums);
    if (k < w.inputs()) add_step<kRows, kPanels>(at, rows, k, 1, sums);
    for (int p = 0; p < kPanels; ++p) {
      for (int r = 0; r < kRows; ++r)
        put_panel(task, row + static_cast<size_t>(r), panel + static_cast<size_t>(p), sums[p][r]);
    }
  }

  void direct_panels(size_t row, size_t rows, size_t panel, size_t panels) const {
    const size_t end = panel + panels;
    if (rows == 1) {
      for (; panel + 4 <= end; panel += 4) direct<1, 4>(row, panel);
    } else if (rows == 2) {
      for (; panel + 2 <= end; panel += 2) direct<2, 2>(row, panel);
    }
    for (; panel < end; ++panel) {
      for_tiles<V::kTileRows>(row, rows,
                              [&](size_t first, auto count) { direct<count(), 1>(first, panel); });
    }
  }

  /// Decodes columns [column, column + columns) of a panel to floats [columns, 16].
  void decode(size_t panel, size_t column, size_t columns, float* floats) const {
    for (size_t k = 0; k < columns; k += Format::kColumns) {
#pragma GCC unroll 2
      for (size_t v = 0; v < size_t{kVecs}; ++v) {
        format.visit(w.panel(panel), column + k, v,
                     [&](size_t c, V value) __attribute__((always_inline)) {
                       value.store(floats + (k + c) * kPanel + v * V::kLanes);
                     });
      }
    }
  }

  /// Adds kRows rows times `columns` decoded columns to sums [kRows, 16].
  template <int kRows>
  void tile(size_t row, size_t column, size_t columns, const float* floats, float* sums) const {
    const float* rows[kRows];
    V acc[kRows][kVecs];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      rows[r] = x(row + static_cast<size_t>(r), column);
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) acc[r][v] = V::load(sums + offset(r, v));
    }
#pragma GCC unroll 4
    for (size_t c = 0; c < columns; ++c, floats += kPanel) {
      V weights[kVecs];
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v)
        weights[v] = V::load(floats + static_cast<size_t>(v) * V::kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const V factor = V::all(rows[r][c]);
#pragma GCC unroll 2
        for (int v = 0; v < kVecs; ++v) acc[r][v] = V::fma(factor, weights[v], acc[r][v]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) acc[r][v].store(sums + offset(r, v));
    }
  }
  static constexpr size_t offset(int row, int v) {
    return static_cast<size_t>(row) * kPanel + static_cast<size_t>(v) * V::kLanes;
  }

  /// Many rows: columns are decoded to floats once for all rows of the block.
  void block(size_t row, size_t rows, size_t panel, float* floats) const {
    float* sums = floats + MatmulTask::kDecodedFloats;
    for (size_t i = 0; i < rows * kPanel; i += V::kLanes) V::zero().store(sums + i);
    for (size_t column = 0; column < w.inputs(); column += MatmulTask::kColumnBlock) {
      const size_t left = w.inputs() - column;
      const size_t columns = left < MatmulTask::kColumnBlock ? left : MatmulTask::kColumnBlock;
      decode(panel, column, columns, floats);
      for_tiles<V::kTileRows>(row, rows, [&](size_t first, auto count) {
        tile<count()>(first, column, columns, floats, sums + (first - row) * kPanel);
      });
    }
    for (size_t r = 0; r < rows; ++r) {
      V y[kVecs];
      for (int v = 0; v < kVecs; ++v) y[v] = V::load(sums + offset(static_cast<int>(r), v));
      put_panel(task, row + r, panel, y);
    }
  }

  void run(size_t row, size_t rows, size_t panel, size_t panels, float* scratch) const {
    if (rows <= kDirectRows) return direct_panels(row, rows, panel, panels);
    for (size_t p = panel; p < panel + panels; ++p) block(row, rows, p, scratch);
  }
};

}  // namespace tandem::kernels
