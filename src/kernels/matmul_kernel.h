// The matrix product over packed panels, for any vector type.
#pragma once

#include <cstddef>

#include "kernels/code_layout.h"
#include "kernels/matmul_task.h"
#include "kernels/panel_format.h"

namespace tandem::kernels {

/// Sums of outputs: kRows rows by kPanels panels of 16, as vectors of eight.
template <class V, int kRows, int kPanels>
using Sums = V[kRows][kPanels][2];

template <class V, int kRows, int kPanels>
[[gnu::always_inline]] inline void clear(Sums<V, kRows, kPanels>& sums) {
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) sums[r][p][0] = sums[r][p][1] = V::zero();
  }
}

/// y = scale * raw + y, then y = bias * (x summed over the group) + y.
template <class V>
[[gnu::always_inline]] inline V close_group(V y, V raw, V scale, V bias, float x_sum) {
  return V::fma(bias, V::all(x_sum), V::fma(scale, raw, y));
}

/// Finishes eight outputs of a row: bias, accumulation, and the end of the row.
template <class V>
[[gnu::always_inline]] inline void put(
    const MatmulArgs& args, float* y, size_t n, V sum, size_t count) {
  if (count >= V::kLanes) [[likely]] {
    if (args.bias != nullptr) sum = sum + V::load(args.bias + n);
    if (args.accumulate) sum = V::load(y + n) + sum;
    return sum.store(y + n);
  }
  if (args.bias != nullptr) sum = sum + V::load(args.bias + n, count);
  if (args.accumulate) sum = V::load(y + n, count) + sum;
  sum.store(y + n, count);
}

template <class V>
[[gnu::always_inline]] inline void put_panel(
    const MatmulTask& task, size_t row, size_t panel, V low, V high) {
  float* y = task.args.y + row * task.args.y_stride;
  const size_t n = panel * PackedMatrix::kPanel;
  const size_t count = task.w->outputs() - n;
  put(task.args, y, n, low, count);
  if (count > V::kLanes) put(task.args, y, n + V::kLanes, high, count - V::kLanes);
}

template <class V, class Format>
struct MatmulKernel {
  static constexpr size_t kPanel = PackedMatrix::kPanel;
  static constexpr size_t kWidth = MatmulTask::kPanelBlock * kPanel;

  const MatmulTask& task;
  const PackedMatrix& w = *task.w;
  const CodeLayout layout = code_layout(w);
  const size_t groups = task.groups;

  const float* x(size_t row, size_t column) const {
    return task.args.x + row * task.args.x_stride + column;
  }
  V parameter(const std::byte* group, size_t index) const {
    return V::load(group + index * V::kLanes * size_of(layout.type), layout.type);
  }

  /// Adds x times `columns` columns that begin at steps[p] of each panel.
  template <int kRows, int kPanels>
  [[gnu::always_inline]] void add_columns(const std::byte* const (&steps)[kPanels],
                                          size_t columns,
                                          const float* const (&rows)[kRows],
                                          size_t column,
                                          Sums<V, kRows, kPanels>& sums) const {
    size_t k = 0;
    const auto step = [&](size_t valid) __attribute__((always_inline)) {
      const size_t offset = k / Format::kColumns * Format::kBytes;
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
        for (size_t half = 0; half < 2; ++half) {
          Format::visit(steps[p] + offset, half,
                        [&](size_t c, V value) __attribute__((always_inline)) {
                          if (c >= valid) return;
#pragma GCC unroll 12
                          for (int r = 0; r < kRows; ++r) {
                            sums[r][p][half] =
                                V::fma(V::all(rows[r][column + k + c]), value, sums[r][p][half]);
                          }
                        });
        }
      }
    };
    for (; k + Format::kColumns <= columns; k += Format::kColumns) step(Format::kColumns);
    if (!Format::kQuantized && k < columns) step(1);
  }

  /// A few rows: codes become floats in registers only.
  template <int kRows, int kPanels>
  void direct(size_t row, size_t panel) const {
    Sums<V, kRows, kPanels> sums;
    clear<V, kRows, kPanels>(sums);
    const float* rows[kRows];
    const std::byte* at[kPanels];
    for (int r = 0; r < kRows; ++r) rows[r] = x(row + static_cast<size_t>(r), 0);
    for (int p = 0; p < kPanels; ++p) at[p] = w.panel(panel + static_cast<size_t>(p));
    if constexpr (!Format::kQuantized) {
      add_columns<kRows, kPanels>(at, w.inputs(), rows, 0, sums);
    } else {
      for (size_t g = 0; g < groups; ++g) direct_group<kRows, kPanels>(row, g, rows, at, sums);
    }
    for (int r = 0; r < kRows; ++r) {
      for (int p = 0; p < kPanels; ++p) {
        put_panel(task, row + static_cast<size_t>(r), panel + static_cast<size_t>(p), sums[r][p][0],
                  sums[r][p][1]);
      }
    }
  }

  template <int kRows, int kPanels>
  [[gnu::always_inline]] void direct_group(size_t row,
                                           size_t g,
                                           const float* const (&rows)[kRows],
                                           const std::byte* (&at)[kPanels],
                                           Sums<V, kRows, kPanels>& sums) const {
    Sums<V, kRows, kPanels> raw;
    clear<V, kRows, kPanels>(raw);
    const std::byte* codes[kPanels];
    for (int p = 0; p < kPanels; ++p) codes[p] = at[p] + layout.header_bytes();
    add_columns<kRows, kPanels>(codes, layout.group, rows, g * layout.group, raw);
    const float* x_sum = task.sums + row * groups + g;
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
      for (size_t half = 0; half < 2; ++half) {
        const V scale = parameter(at[p], half);
        const V bias = parameter(at[p], 2 + half);
#pragma GCC unroll 12
        for (int r = 0; r < kRows; ++r) {
          const float sum = x_sum[static_cast<size_t>(r) * groups];
          sums[r][p][half] = close_group(sums[r][p][half], raw[r][p][half], scale, bias, sum);
        }
      }
      at[p] += layout.group_bytes();
    }
  }

  /// Rows by panels, in tiles whose sums fit the registers.
  template <int kRows, int kPanels>
  void direct_panels(size_t row, size_t panel, size_t panels) const {
    for (; panels >= kPanels; panels -= kPanels, panel += kPanels)
      direct<kRows, kPanels>(row, panel);
    for (; panels > 0; --panels, ++panel) direct<kRows, 1>(row, panel);
  }

  /// Rows in tiles of nearly equal size, panel by panel so that codes are read from memory once.
  void direct_rows(size_t row, size_t rows, size_t panel, size_t panels) const {
    const size_t tiles = (rows + MatmulTask::kTileRows - 1) / MatmulTask::kTileRows;
    if (tiles == 1) return direct_tile(row, rows, panel, panels);
    for (size_t p = panel; p < panel + panels; ++p) {
      for (size_t t = 0; t < tiles; ++t) {
        const size_t first = rows * t / tiles;
        direct_tile(row + first, rows * (t + 1) / tiles - first, p, 1);
      }
    }
  }

  void direct_tile(size_t row, size_t rows, size_t panel, size_t panels) const {
    switch (rows) {
      case 1:
        return direct_panels<1, 4>(row, panel, panels);
      case 2:
        return direct_panels<2, 2>(row, panel, panels);
      case 3:
        return direct_panels<3, 1>(row, panel, panels);
      case 4:
        return direct_panels<4, 1>(row, panel, panels);
      case 5:
        return direct_panels<5, 1>(row, panel, panels);
      default:
        return direct_panels<6, 1>(row, panel, panels);
    }
  }

  /// Decodes columns [column, column + columns) of a panel to floats [columns, 16], and their
  /// scales and biases to [groups, 2, 16].
  void decode(size_t panel, size_t column, size_t columns, float* floats, float* parameters) const {
    const std::byte* at = w.panel(panel);
    if constexpr (Format::kQuantized) {
      at += column / layout.group * layout.group_bytes();
      for (size_t k = 0; k < columns; k += layout.group, at += layout.group_bytes()) {
        for (size_t i = 0; i < 4; ++i, parameters += V::kLanes) parameter(at, i).store(parameters);
        decode_steps(at + layout.header_bytes(), layout.group, floats + k * kPanel);
      }
    } else {
      decode_steps(at + column / Format::kColumns * Format::kBytes, columns, floats);
    }
  }

  [[gnu::always_inline]] static void decode_steps(const std::byte* step,
                                                  size_t columns,
                                                  float* floats) {
    for (size_t k = 0; k < columns; k += Format::kColumns, step += Format::kBytes) {
      for (size_t half = 0; half < 2; ++half) {
        Format::visit(step, half, [&](size_t c, V value) __attribute__((always_inline)) {
          value.store(floats + (k + c) * kPanel + half * V::kLanes);
        });
      }
    }
  }

  /// Sums kRows rows over `columns` decoded columns of one panel; `sums` has kWidth floats a row.
  template <int kRows>
  void tile(size_t row,
            size_t column,
            size_t columns,
            const float* floats,
            const float* parameters,
            float* sums) const {
    const float* rows[kRows];
    for (int r = 0; r < kRows; ++r) rows[r] = x(row + static_cast<size_t>(r), column);
    if constexpr (Format::kQuantized) {
      const float* x_sums = task.sums + row * groups + column / layout.group;
      for (size_t k = 0; k < columns; k += layout.group, ++x_sums, parameters += 2 * kPanel) {
        V raw[kRows][2];
#pragma GCC unroll 12
        for (int r = 0; r < kRows; ++r) raw[r][0] = raw[r][1] = V::zero();
        add_decoded<kRows>(rows, k, k + layout.group, floats, raw);
        close_tile<kRows>(raw, x_sums, parameters, sums);
      }
    } else {
      V acc[kRows][2];
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        acc[r][0] = V::load(sums + static_cast<size_t>(r) * kWidth);
        acc[r][1] = V::load(sums + static_cast<size_t>(r) * kWidth + V::kLanes);
      }
      add_decoded<kRows>(rows, 0, columns, floats, acc);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        acc[r][0].store(sums + static_cast<size_t>(r) * kWidth);
        acc[r][1].store(sums + static_cast<size_t>(r) * kWidth + V::kLanes);
      }
    }
  }

  template <int kRows>
  [[gnu::always_inline]] static void add_decoded(const float* const (&rows)[kRows],
                                                 size_t begin,
                                                 size_t end,
                                                 const float* floats,
                                                 V (&acc)[kRows][2]) {
#pragma GCC unroll 4
    for (size_t c = begin; c < end; ++c) {
      const V low = V::load(floats + c * kPanel);
      const V high = V::load(floats + c * kPanel + V::kLanes);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        const V factor = V::all(rows[r][c]);
        acc[r][0] = V::fma(factor, low, acc[r][0]);
        acc[r][1] = V::fma(factor, high, acc[r][1]);
      }
    }
  }

  /// Ends a group of a tile: x_sums has `groups` floats a row.
  template <int kRows>
  [[gnu::always_inline]] void close_tile(const V (&raw)[kRows][2],
                                         const float* x_sums,
                                         const float* parameters,
                                         float* sums) const {
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      const V scale = V::load(parameters + half * V::kLanes);
      const V bias = V::load(parameters + kPanel + half * V::kLanes);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        float* at = sums + static_cast<size_t>(r) * kWidth + half * V::kLanes;
        const float x_sum = x_sums[static_cast<size_t>(r) * groups];
        close_group(V::load(at), raw[r][half], scale, bias, x_sum).store(at);
      }
    }
  }

  void tile_rows(size_t count,
                 size_t row,
                 size_t column,
                 size_t columns,
                 const float* floats,
                 const float* parameters,
                 float* sums) const {
    switch (count) {
      case 1:
        return tile<1>(row, column, columns, floats, parameters, sums);
      case 2:
        return tile<2>(row, column, columns, floats, parameters, sums);
      case 3:
        return tile<3>(row, column, columns, floats, parameters, sums);
      case 4:
        return tile<4>(row, column, columns, floats, parameters, sums);
      case 5:
        return tile<5>(row, column, columns, floats, parameters, sums);
      default:
        return tile<6>(row, column, columns, floats, parameters, sums);
    }
  }

  /// Many rows: columns are decoded to floats once for all rows of the block.
  void block(size_t row, size_t rows, size_t panel, size_t panels, float* scratch) const {
    float* floats = scratch;
    float* parameters = floats + MatmulTask::kPanelBlock * MatmulTask::kPanelFloats;
    float* sums = parameters + MatmulTask::kPanelBlock * MatmulTask::kParameterFloats;
    for (size_t i = 0; i < rows * kWidth; i += V::kLanes) V::zero().store(sums + i);
    for (size_t column = 0; column < w.inputs(); column += MatmulTask::kColumnBlock) {
      const size_t left = w.inputs() - column;
      const size_t columns = left < MatmulTask::kColumnBlock ? left : MatmulTask::kColumnBlock;
      for (size_t p = 0; p < panels; ++p) {
        decode(panel + p, column, columns, floats + p * MatmulTask::kPanelFloats,
               parameters + p * MatmulTask::kParameterFloats);
      }
      for (size_t r = 0; r < rows; r += MatmulTask::kTileRows) {
        const size_t count = rows - r < MatmulTask::kTileRows ? rows - r : MatmulTask::kTileRows;
        for (size_t p = 0; p < panels; ++p) {
          tile_rows(count, row + r, column, columns, floats + p * MatmulTask::kPanelFloats,
                    parameters + p * MatmulTask::kParameterFloats, sums + r * kWidth + p * kPanel);
        }
      }
    }
    for (size_t r = 0; r < rows; ++r) {
      for (size_t p = 0; p < panels; ++p) {
        const float* from = sums + r * kWidth + p * kPanel;
        put_panel(task, row + r, panel + p, V::load(from), V::load(from + V::kLanes));
      }
    }
  }

  void run(size_t begin, size_t end, float* scratch) const {
    while (begin < end) {
      const size_t row = begin / w.panels() * task.row_block;
      const size_t panel = begin % w.panels();
      size_t rows = task.args.rows - row;
      if (rows > task.row_block) rows = task.row_block;
      size_t panels = w.panels() - panel;
      if (panels > end - begin) panels = end - begin;
      if (panels > MatmulTask::kPanelBlock) panels = MatmulTask::kPanelBlock;
      if (rows <= MatmulTask::kDirectRows) {
        direct_rows(row, rows, panel, panels);
      } else {
        block(row, rows, panel, panels, scratch);
      }
      begin += panels;
    }
  }
};

template <class V>
void matmul_range(const MatmulTask& task, size_t begin, size_t end, float* scratch) {
  const auto run = [&](auto kernel) { kernel.run(begin, end, scratch); };
  switch (task.w->stored_bits()) {
    case 2:
      return run(MatmulKernel<V, QuantizedFormat<V, 2>>{task});
    case 4:
      return run(MatmulKernel<V, QuantizedFormat<V, 4>>{task});
    case 8:
      return run(MatmulKernel<V, QuantizedFormat<V, 8>>{task});
    default:
      break;
  }
  switch (task.w->scalar_type()) {
    case ScalarType::kF32:
      return run(MatmulKernel<V, DenseFormat<V, ScalarType::kF32>>{task});
    case ScalarType::kF16:
      return run(MatmulKernel<V, DenseFormat<V, ScalarType::kF16>>{task});
    case ScalarType::kBf16:
      return run(MatmulKernel<V, DenseFormat<V, ScalarType::kBf16>>{task});
  }
}

/// Fills sums and factored x of rows [begin, end).
template <class V>
void prepare_rows(
    const MatmulTask& task, const float* x, size_t x_stride, size_t begin, size_t end) {
  const CodeLayout layout = code_layout(*task.w);
  constexpr size_t kPeriod = 16;  // columns after which factors repeat, in any layout
  float factors[kPeriod];
  for (size_t c = 0; c < kPeriod; ++c) factors[c] = layout.column_factor(c);
  for (size_t r = begin; r < end; ++r) {
    const float* from = x + r * x_stride;
    float* to = task.factored + r * task.w->inputs();
    for (size_t g = 0; g < task.groups; ++g) {
      V sum = V::zero();
      for (size_t k = 0; k < layout.group; k += V::kLanes, from += V::kLanes, to += V::kLanes) {
        const V value = V::load(from);
        sum = sum + value;
        (value * V::load(factors + k % kPeriod)).store(to);
      }
      task.sums[r * task.groups + g] = sum.sum();
    }
  }
}

}  // namespace tandem::kernels
