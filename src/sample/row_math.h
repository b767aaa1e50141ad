// Passes over a row of logits that are worth writing with vector registers.
#pragma once

#include <cstddef>
#include <limits>
#include <span>

namespace tandem::sample {

/// What a token has that cannot be drawn.
inline constexpr float kNoLogit = -std::numeric_limits<float>::infinity();

/// The largest value; NaN never counts. -infinity for a row without a number above it.
float row_max(std::span<const float> row);

/// Index of the first element equal to `value`, or row.size().
size_t row_find(std::span<const float> row, float value);

/// The sum of exp((x - max) * scale) over the row; NaN and -infinity add nothing. When `weights` is
/// not null it receives each element's term. Requires max finite and scale > 0. The result does not
/// depend on the machine's vector width.
double exp_sum(std::span<const float> row, float max, float scale, float* weights);

}  // namespace tandem::sample
