#include "sample/row_math.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

namespace tandem::sample {
namespace {

constexpr size_t kLanes = 4;
using Floats = float __attribute__((vector_size(sizeof(float) * kLanes)));
using Ints = int32_t __attribute__((vector_size(sizeof(int32_t) * kLanes)));

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLowest = -87.0F;  // exp below this is taken as 0

Floats load(const float* from) {
  Floats values;
  std::memcpy(&values, from, sizeof(values));
  return values;
}

/// Up to kLanes values, the rest filled with -infinity.
Floats load_some(const float* from, size_t count) {
  Floats values = {-kInfinity, -kInfinity, -kInfinity, -kInfinity};
  std::memcpy(&values, from, count * sizeof(float));
  return values;
}

/// exp(x) for x <= 0 within 2 units in the last place; 0 below kLowest and for NaN. 2^n times a
/// polynomial of the rest, n being x / ln 2 rounded by adding and subtracting 1.5 * 2^23.
Floats exp_lanes(Floats x) {
  constexpr float kRound = 12582912.0F;
  const Ints in_range = x > kLowest;
  x = in_range ? x : Floats{};
  const Floats shifted = x * 1.44269504088896341F + kRound;
  const Floats n = shifted - kRound;
  const Floats r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  Floats p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const Ints exponent = ((Ints)shifted - std::bit_cast<int32_t>(kRound) + 127) << 23;
  return in_range ? p * (Floats)exponent : Floats{};
}

double total(Floats lanes) {
  return (double{lanes[0]} + double{lanes[1]}) + (double{lanes[2]} + double{lanes[3]});
}

}  // namespace

float row_max(std::span<const float> row) {
  Floats best = {-kInfinity, -kInfinity, -kInfinity, -kInfinity};
  size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) {
    const Floats x = load(&row[i]);
    best = x > best ? x : best;
  }
  float max = std::max(std::max(best[0], best[1]), std::max(best[2], best[3]));
  for (; i < row.size(); ++i) max = row[i] > max ? row[i] : max;
  return max;
}

size_t row_find(std::span<const float> row, float value) {
  return static_cast<size_t>(std::find(row.begin(), row.end(), value) - row.begin());
}

double exp_sum(std::span<const float> row, float max, float scale, float* weights) {
  constexpr size_t kBlock = 512;  // single precision sums stay short
  double sum = 0;
  for (size_t begin = 0; begin < row.size(); begin += kBlock) {
    const size_t end = std::min(row.size(), begin + kBlock);
    Floats block{};
    for (size_t i = begin; i < end; i += kLanes) {
      const size_t count = std::min(kLanes, end - i);
      const Floats x = count == kLanes ? load(&row[i]) : load_some(&row[i], count);
      const Floats term = exp_lanes((x - max) * scale);
      if (weights != nullptr) std::memcpy(weights + i, &term, count * sizeof(float));
      block += term;
    }
    sum += total(block);
  }
  return sum;
}

}  // namespace tandem::sample
