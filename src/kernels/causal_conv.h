// Convolution of each channel over the tokens of a row, causal and short.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/pool.h"
#include "kernels/state_rows.h"

namespace tandem::kernels {

/// With in[t] = gate[t] * x[t]:
///
///   out[t] = out_gate[t] * act(bias + sum over j < taps of weight[j] * in[t - taps + 1 + j])
///
/// where act(x) is x, or x / (1 + exp(-x)) with has_silu, and what lies before a row's first token
/// comes from the row's state: its last taps - 1 inputs. Terms are added in the order of j, so that
/// a token's bits depend on nothing but its row's tokens.
struct CausalConvArgs {
  const float* x = nullptr;         // [tokens, channels]
  const float* gate = nullptr;      // as x; null: ones
  const float* out_gate = nullptr;  // as x; null: ones
  size_t x_stride = 0;              // floats from token to token; 0 means channels
  size_t gate_stride = 0;
  size_t out_gate_stride = 0;
  const float* weight = nullptr;  // [taps, channels]
  const float* bias = nullptr;    // [channels]; null: zeros
  size_t channels = 0;
  size_t taps = 0;  // at least 1
  bool has_silu = false;
  std::span<const StateRow> rows = {};
  float* states = nullptr;  // a slot's: [taps - 1, channels], the row's oldest input first
  size_t state_stride = 0;  // floats from slot to slot; 0 means (taps - 1) * channels
  float* out = nullptr;     // [tokens, channels]; none of the inputs
};

void causal_conv(WorkerPool& pool, const CausalConvArgs& args);

}  // namespace tandem::kernels
