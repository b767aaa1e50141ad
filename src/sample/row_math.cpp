#include "sample/row_math.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>

// Two widths of vectors: what every machine has, and AVX2 where it is found at run time.
#if defined(__x86_64__) && defined(__GNUC__)
#define TANDEM_HAS_WIDE 1
#pragma GCC diagnostic ignored "-Wpsabi"  // wide vectors pass between inlined functions only
#endif

namespace tandem::sample {
namespace {

constexpr size_t kSumBlock = 512;  // terms of a sum in single precision
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLowest = -87.0F;  // exp below this is taken as 0

template <size_t kLanes>
struct Lanes {
  using Floats [[gnu::vector_size(sizeof(float) * kLanes)]] = float;
  using Ints [[gnu::vector_size(sizeof(int32_t) * kLanes)]] = int32_t;
};

using Narrow = Lanes<4>::Floats;  // the order of a block's sum: by index modulo 4

template <size_t kLanes>
using Floats = typename Lanes<kLanes>::Floats;

template <size_t kLanes>
[[gnu::always_inline]] inline void load(const float* from, size_t count, Floats<kLanes>& to) {
  if (count >= kLanes) {
    std::memcpy(&to, from, sizeof(to));
    return;
  }
  for (size_t i = 0; i < kLanes; ++i) to[i] = i < count ? from[i] : -kInfinity;
}

/// x becomes exp(x) for x <= 0 within 2 units in the last place; 0 below kLowest and for NaN. 2^n
/// times a polynomial of the rest, n being x / ln 2 rounded by adding and subtracting 1.5 * 2^23.
template <size_t kLanes>
[[gnu::always_inline]] inline void exponentiate(Floats<kLanes>& x) {
  using F = Floats<kLanes>;
  using I = typename Lanes<kLanes>::Ints;
  constexpr float kRound = 12582912.0F;
  const I in_range = x > kLowest;
  x = in_range ? x : F{};
  const F shifted = x * 1.44269504088896341F + kRound;
  const F n = shifted - kRound;
  const F r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  F p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const I exponent = ((I)shifted - std::bit_cast<int32_t>(kRound) + 127) << 23;
  x = in_range ? p * (F)exponent : F{};
}

/// What one call needs of a row.
struct ExpSum {
  std::span<const float> row;
  float max;
  float scale;
  float* weights;
};

template <size_t kLanes>
[[gnu::always_inline]] inline double exp_sum_lanes(const ExpSum& a) {
  double sum = 0;
  for (size_t begin = 0; begin < a.row.size(); begin += kSumBlock) {
    const size_t end = std::min(a.row.size(), begin + kSumBlock);
    Narrow block{};
    for (size_t i = begin; i < end; i += kLanes) {
      Floats<kLanes> term;
      load<kLanes>(a.row.data() + i, end - i, term);
      term = (term - a.max) * a.scale;
      exponentiate<kLanes>(term);
      if (a.weights != nullptr)
        std::memcpy(a.weights + i, &term, std::min(kLanes, end - i) * sizeof(float));
      Narrow parts[kLanes / 4];
      std::memcpy(parts, &term, sizeof(term));
      for (const Narrow& part : parts) block += part;
    }
    sum += (double{block[0]} + double{block[1]}) + (double{block[2]} + double{block[3]});
  }
  return sum;
}

/// Writes each group's largest element; returns the largest of all.
template <size_t kLanes>
[[gnu::always_inline]] inline float group_maxima(std::span<const float> row, float* groups) {
  constexpr size_t kGroup = RowMaxima::kGroup;
  float max = -kInfinity;
  for (size_t begin = 0; begin < row.size(); begin += kGroup) {
    const size_t end = std::min(row.size(), begin + kGroup);
    Floats<kLanes> best = Floats<kLanes>{} - kInfinity;
    for (size_t i = begin; i < end; i += kLanes) {
      Floats<kLanes> x;
      load<kLanes>(row.data() + i, end - i, x);
      best = x > best ? x : best;
    }
    float largest = best[0];
    for (size_t i = 1; i < kLanes; ++i) largest = best[i] > largest ? best[i] : largest;
    *groups++ = largest;
    max = largest > max ? largest : max;
  }
  return max;
}

#if defined(TANDEM_HAS_WIDE)
const bool has_wide = __builtin_cpu_supports("avx2");

// Without FMA: a product that is not rounded would give other bits than the narrow one.
[[gnu::target("avx2")]] double exp_sum_wide(const ExpSum& a) { return exp_sum_lanes<8>(a); }

[[gnu::target("avx2")]] float group_maxima_wide(std::span<const float> row, float* groups) {
  return group_maxima<8>(row, groups);
}
#else
constexpr bool has_wide = false;

double exp_sum_wide(const ExpSum& a) { return exp_sum_lanes<4>(a); }

float group_maxima_wide(std::span<const float> row, float* groups) {
  return group_maxima<4>(row, groups);
}
#endif

}  // namespace

void RowMaxima::read(std::span<const float> row) {
  groups_.resize((row.size() + kGroup - 1) / kGroup);
  max_ = has_wide ? group_maxima_wide(row, groups_.data()) : group_maxima<4>(row, groups_.data());
}

float RowMaxima::floor_of(size_t count) {
  if (count == 0 || count > groups_.size()) return kNoLogit;
  sorted_.assign(groups_.begin(), groups_.end());
  const auto at = sorted_.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(sorted_.begin(), at, sorted_.end(), std::greater<>());
  return *at;
}

size_t RowMaxima::find(std::span<const float> row, float value) const {
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g] < value) continue;
    const auto begin = row.begin() + static_cast<std::ptrdiff_t>(g * kGroup);
    const auto found = std::find(begin, row.end(), value);
    return static_cast<size_t>(found - row.begin());
  }
  return row.size();
}

double exp_sum(std::span<const float> row, float max, float scale, float* weights) {
  const ExpSum a{.row = row, .max = max, .scale = scale, .weights = weights};
  return has_wide ? exp_sum_wide(a) : exp_sum_lanes<4>(a);
}

}  // namespace tandem::sample
