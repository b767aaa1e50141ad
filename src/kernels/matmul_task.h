// One product, split into items that matmul's workers share.
#pragma once

#include <cstddef>

#include "kernels/matmul.h"

namespace tandem::kernels {

/// Item i is panel i % panels of the rows of block i / panels.
struct MatmulTask {
  static constexpr size_t kRowBlock = 126;     // most rows that share a decoded panel
  static constexpr size_t kRowChunk = 504;     // most rows of a task
  static constexpr size_t kPanelBlock = 4;     // panels decoded together
  static constexpr size_t kColumnBlock = 256;  // columns decoded at once; a multiple of any group
  static constexpr size_t kTileRows = 6;       // rows that a micro kernel holds in registers
  static constexpr size_t kDirectRows = 18;    // up to here codes go straight to registers

  const PackedMatrix* w = nullptr;
  MatmulArgs args = {};       // strides resolved; when quantized, x is `factored`
  size_t groups = 0;          // 0 when dense
  size_t row_block = 0;       // rows of a block, at most kRowBlock
  float* sums = nullptr;      // [rows, groups]: x summed over each group
  float* factored = nullptr;  // [rows, inputs]: x times the column factors of the layout

  size_t items() const { return (args.rows + row_block - 1) / row_block * w->panels(); }

  /// Scratch of a worker: decoded columns, decoded scales and biases, and sums of outputs.
  static constexpr size_t kPanelFloats = kColumnBlock * PackedMatrix::kPanel;
  static constexpr size_t kParameterFloats = kColumnBlock / 32 * 2 * PackedMatrix::kPanel;
  static constexpr size_t kScratchFloats =
      kPanelBlock * (kPanelFloats + kParameterFloats + kRowBlock * PackedMatrix::kPanel);
};

}  // namespace tandem::kernels
