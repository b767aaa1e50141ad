// One product, split into items that matmul's workers share.
#pragma once

#include <cstddef>

#include "kernels/matmul.h"
#include "kernels/row_codes.h"

namespace tandem::kernels {

/// Item i is panel i % panels of the rows of block i / panels.
struct MatmulTask {
  static constexpr size_t kRowBlock =
      128;  // most rows that read a panel together: they stay cached
  static constexpr size_t kRowChunk = 512;     // most rows of a task
  static constexpr size_t kColumnBlock = 256;  // columns decoded to floats at once

  const PackedMatrix* w = nullptr;
  MatmulArgs args = {};  // strides resolved
  RowCodes rows = {};    // of args.x, when it takes codes
  size_t groups = 0;     // 0 when it does not
  size_t row_block = 0;  // rows of a block, at most kRowBlock

  bool takes_codes() const { return w->takes_row_codes(); }

  size_t items() const { return (args.rows + row_block - 1) / row_block * w->panels(); }

  /// Scratch of a worker. With codes: a panel's codes as bytes, its scales and biases as floats;
  /// else decoded columns and sums of outputs.
  static constexpr size_t kDecodedFloats = kColumnBlock * PackedMatrix::kPanel;
  size_t scratch_floats() const {
    if (!takes_codes()) return kDecodedFloats + kRowBlock * PackedMatrix::kPanel;
    return PackedMatrix::kPanel * (w->inputs() / 4 + 2 * groups);
  }
};

}  // namespace tandem::kernels
