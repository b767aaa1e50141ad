// The least recurrent operation: a running sum of each channel, for tests of what keeps states.
#pragma once

#include <algorithm>

#include "tensor/state_pool.h"

namespace tandem::tensor {

/// Token by token in MLX's operations.
inline array state_sum_plain(StatePool& pool, StatePart part, const array& x, const Step& step) {
  const array before = load_states(pool, part, step);
  const int width = static_cast<int>(part.floats);
  std::vector<array> out, saved;
  int at = 0;
  for (int r = 0; r < static_cast<int>(step.rows().size()); ++r) {
    const StepRow& row = step.rows()[static_cast<size_t>(r)];
    array sum = mx::slice(before, {r, 0}, {r + 1, width});
    for (uint32_t t = 1; t <= row.tokens.size(); ++t, ++at) {
      sum = mx::add(sum, mx::slice(x, {at, 0}, {at + 1, width}));
      out.push_back(sum);
      for (const StateSave& save : row.saves)
        if (save.tokens == t) saved.push_back(sum);
    }
  }
  if (!saved.empty()) store_states(pool, part, mx::concatenate(saved, 0), step);
  return mx::concatenate(out, 0);
}

/// As a call that can be replayed.
struct BoundStateSum {
  const Step& step;
  BoundStates states;
  size_t width;
  const float* x;
  float* out;

  void operator()() const {
    size_t at = 0;
    for (const StepRow& row : step.rows()) {
      std::vector<float> sum(width, 0.0F);
      if (const float* before = states.before(row)) sum.assign(before, before + width);
      for (uint32_t t = 1; t <= row.tokens.size(); ++t)
        for (size_t i = 0; i < width; ++i, ++at) {
          out[at] = sum[i] += x[at];
          for (const StateSave& save : row.saves)
            if (save.tokens == t) states.at(save.slot)[i] = sum[i];
        }
    }
  }
};

inline array state_sum_fast(StatePool& pool, StatePart part, const array& x, const Step& step) {
  return state_op("StateSum", x.shape(), pool, part, {x},
                  [&step, part](const auto& in, float* out, BoundStates states) -> CpuCall {
                    return BoundStateSum{.step = step,
                                         .states = states,
                                         .width = part.floats,
                                         .x = in[0].template data<float>(),
                                         .out = out};
                  });
}

/// x [tokens, part.floats] float32 → the sums up to each token, of the same shape.
inline array state_sum(
    Path path, StatePool& pool, StatePart part, const array& x, const Step& step) {
  return path == Path::kFast ? state_sum_fast(pool, part, x, step)
                             : state_sum_plain(pool, part, x, step);
}

}  // namespace tandem::tensor
