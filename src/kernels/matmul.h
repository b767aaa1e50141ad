// Products of float32 rows with a packed weight matrix, and look-up of its rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/packed_matrix.h"
#include "kernels/pool.h"

namespace tandem::kernels {

/// y[rows, outputs] = x[rows, inputs] W^T + bias, or with `accumulate` y += that.
struct MatmulArgs {
  const float* x = nullptr;
  size_t rows = 0;
  size_t x_stride = 0;  // floats from row to row; 0 means inputs
  float* y = nullptr;
  size_t y_stride = 0;          // floats from row to row; 0 means outputs
  const float* bias = nullptr;  // [outputs] or null
  bool accumulate = false;
};

/// Each output element is summed in one order that depends on the matrix alone, so a row's bits
/// depend neither on the other rows nor on the threads:
/// - quantized with float16 or bfloat16 scales: group by group, x in 16-bit codes (RowCodes), an
///   exact integer sum, then scale and bias; the same bits at every CPU level that fuses
///   multiply-adds;
/// - quantized with float32 scales, or dense: in float32, in column order.
/// Requires y not to overlap x. Uses the pool's scratch.
void matmul(WorkerPool& pool, const PackedMatrix& w, const MatmulArgs& args);

/// out[i, :] = row ids[i] of W as float32, i < count: code * scale + bias, each operation rounded.
/// Requires ids below w.outputs(). out is [count, inputs].
void gather_rows(
    WorkerPool& pool, const PackedMatrix& w, const uint32_t* ids, size_t count, float* out);

}  // namespace tandem::kernels
