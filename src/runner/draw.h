// Draws tokens from logits on the device, by the rules of sample/sampler.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/step_plan.h"
#include "tensor/cpu_op.h"

namespace tandem::runner {

/// One row to draw from.
struct DrawRow {
  plan::Draw draw;
  uint32_t row = 0;       // of the logits
  uint32_t position = 0;  // of the token to be drawn, which keys its random number
};

/// Tokens of rows, in an order of their own: that of the i-th row is at `place[i]`.
struct Drawn {
  tensor::array ids;   // [rows] int32, -1 where no logit is a number; for the host
  tensor::array next;  // the same, 0 instead of -1, in memory of its own; for the next step
  std::vector<uint32_t> place;
};

/// Builds the graph that draws from rows of logits [any, vocab] float32; evaluates nothing. Greedy
/// rows get exactly the host's token. Others get it but where the random number lies within
/// float32 rounding of the boundary between two tokens, or top_p within it of the mass above one:
/// sums are in float32, and of the number 24 bits count. A row's token depends on no other row:
/// only maxima, sorts, scans and counts cross columns, all either exact or done in one order a row.
///
/// Requires at least one row.
Drawn draw(const tensor::array& logits, std::span<const DrawRow> rows);

}  // namespace tandem::runner
