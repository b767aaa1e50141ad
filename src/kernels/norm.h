// RMS normalisation.
#pragma once

#include <cstddef>

#include "kernels/pool.h"

namespace tandem::kernels {

/// out[r, i] = x[r, i] / sqrt(mean of x[r]^2 + eps) * (weight[i] + weight_offset).
/// A per-head norm of q [tokens, heads, d] is one with tokens * heads rows when q is contiguous.
struct RmsNormArgs {
  const float* x = nullptr;
  size_t rows = 0;
  size_t width = 0;
  size_t x_stride = 0;            // floats from row to row; 0 means width
  const float* weight = nullptr;  // [width]; null means ones
  float weight_offset = 0.0f;     // 1 for checkpoints that store weight - 1
  float eps = 1e-6f;
  const float* squares =
      nullptr;                // [rows], of rows that x is a part of: their sums of squares over
  size_t squares_stride = 1;  // squares_width columns; null: x is all of them
  size_t squares_width = 0;
  float* out = nullptr;  // may be x
  size_t out_stride = 0;
};

/// out[r] = sum of x[r]^2, in an order that depends on the width alone.
struct SquareSumArgs {
  const float* x = nullptr;
  size_t rows = 0;
  size_t width = 0;
  size_t x_stride = 0;   // floats from row to row; 0 means width
  float* out = nullptr;  // [rows]
  size_t out_stride = 1;
};

void sum_squares(WorkerPool& pool, const SquareSumArgs& args);

void rms_norm(WorkerPool& pool, const RmsNormArgs& args);

/// What is added to x before the norm, and where the sum goes: [rows, width] each.
struct AddendArgs {
  const float* y = nullptr;
  size_t y_stride = 0;   // floats from row to row; 0 means width
  float* sum = nullptr;  // may be x where the strides are equal, or y; rows one after the other
};

/// sum = x + y, and out its norm: rms_norm of args whose x is the sum, row by row. Same bits as one
/// after the other.
void add_rms_norm(WorkerPool& pool, const RmsNormArgs& args, const AddendArgs& addend);

}  // namespace tandem::kernels
