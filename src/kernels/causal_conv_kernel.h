// Causal convolution for any vector type.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/causal_conv.h"
#include "kernels/row_kernels.h"

namespace tandem::kernels {

/// Token n of a row, whose channels [i, i + lanes) `load` reads.
template <class V, class Load>
[[gnu::always_inline]] inline V convolved(
    const CausalConvArgs& args, const StateRow& row, size_t n, size_t i, Load load) {
  const size_t kept = args.taps - 1;
  const size_t older = n < kept ? kept - n : 0;  // taps over inputs of the state
  V sum = args.bias == nullptr ? V::zero() : load(args.bias + i);
  if (row.state) {
    const float* state = args.states + *row.state * args.state_stride + n * args.channels + i;
    for (size_t j = 0; j < older; ++j)
      sum = V::fma(load(args.weight + j * args.channels + i), load(state + j * args.channels), sum);
  }
  size_t token = row.first_token + n + older - kept;
  for (size_t j = older; j < args.taps; ++j, ++token) {
    const V x = load(args.x + token * args.x_stride + i);
    const V input = args.gate == nullptr ? x : load(args.gate + token * args.gate_stride + i) * x;
    sum = V::fma(load(args.weight + j * args.channels + i), input, sum);
  }
  if (args.has_silu) sum = silu(sum);
  if (args.out_gate == nullptr) return sum;
  return load(args.out_gate + (token - 1) * args.out_gate_stride + i) * sum;
}

template <class V>
void causal_conv_range(const CausalConvArgs& args, size_t begin, size_t end) {
  for (const StateRow& row : args.rows) {
    const size_t last = std::min(end, row.first_token + row.count);
    for (size_t t = std::max(begin, row.first_token); t < last; ++t) {
      const size_t n = t - row.first_token;
      float* out = args.out + t * args.channels;
      size_t i = 0;
      for (; i + V::kLanes <= args.channels; i += V::kLanes)
        convolved<V>(args, row, n, i, [](const float* p) { return V::load(p); }).store(out + i);
      if (const size_t left = args.channels - i; left > 0)
        convolved<V>(args, row, n, i, [left](const float* p) {
          return V::load(p, left);
        }).store(out + i, left);
    }
  }
}

}  // namespace tandem::kernels
