// One product, split into items that matmul's workers share.
#pragma once

#include <cstddef>

#include "kernels/matmul.h"

namespace tandem::kernels {

/// Item i is panel i % panels of the rows of block i / panels.
struct MatmulTask {
  static constexpr size_t kRowBlock = 126;     // rows that share a decoded panel
  static constexpr size_t kPanelBlock = 4;     // panels decoded together
  static constexpr size_t kColumnBlock = 256;  // columns decoded at once; a multiple of any group
  static constexpr size_t kTileRows = 6;       // rows that a micro kernel holds in registers
  static constexpr size_t kDirectRows = 6;     // up to here codes go straight to registers

  const PackedMatrix* w = nullptr;
  MatmulArgs args = {};   // strides resolved
  float* sums = nullptr;  // [rows, groups]: x summed over each group; null when dense

  size_t groups() const { return w->inputs() / w->group(); }
  size_t row_blocks() const { return (args.rows + kRowBlock - 1) / kRowBlock; }
  size_t items() const { return row_blocks() * w->panels(); }

  /// Scratch of a worker: decoded columns, decoded scales and biases, and sums of outputs.
  static constexpr size_t kPanelFloats = kColumnBlock * PackedMatrix::kPanel;
  static constexpr size_t kParameterFloats = kColumnBlock / 32 * 2 * PackedMatrix::kPanel;
  static constexpr size_t kScratchFloats =
      kPanelBlock * (kPanelFloats + kParameterFloats + kRowBlock * PackedMatrix::kPanel);
};

}  // namespace tandem::kernels
