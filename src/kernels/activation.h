// Elementwise operations on rows of float32.
#pragma once

#include <cstddef>

#include "kernels/pool.h"

namespace tandem::kernels {

/// Rows of a gate and an up projection; both may lie in one matrix (strides). out may be gate or
/// up.
struct GatedArgs {
  const float* gate = nullptr;
  const float* up = nullptr;
  float* out = nullptr;
  size_t rows = 0;
  size_t width = 0;
  size_t gate_stride = 0;  // floats from row to row; 0 means width
  size_t up_stride = 0;
  size_t out_stride = 0;
};

/// out = gate / (1 + exp(-gate)) * up.
void swiglu(WorkerPool& pool, const GatedArgs& args);

/// out = up / (1 + exp(-gate)).
void sigmoid_gated(WorkerPool& pool, const GatedArgs& args);

/// out = gelu(gate) * up with the tanh approximation of gelu.
void geglu_tanh(WorkerPool& pool, const GatedArgs& args);

/// gpt-oss': out = g / (1 + exp(-1.702 g)) * (u + 1), where g is gate, at most 7, and u is up,
/// within -7 and 7.
void clamped_swiglu(WorkerPool& pool, const GatedArgs& args);

/// out = max(gate, 0) * up: with one matrix for both, the square of what is above 0.
void relu_gated(WorkerPool& pool, const GatedArgs& args);

/// y[i] += x[i], i < count.
void add(WorkerPool& pool, float* y, const float* x, size_t count);

/// y[i] *= factor, i < count.
void scale(WorkerPool& pool, float* y, float factor, size_t count);

/// x[i] = cap * tanh(x[i] / cap), i < count. Requires cap > 0.
void softcap(WorkerPool& pool, float* x, float cap, size_t count);

}  // namespace tandem::kernels
