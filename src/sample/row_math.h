// Passes over a row of logits that are worth writing with vector registers.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace tandem::sample {

/// What a token has that cannot be drawn.
inline constexpr float kNoLogit = -std::numeric_limits<float>::infinity();

/// The largest value of each kGroup elements of a row, so that whoever looks for large ones passes
/// over the rest of the row; NaN never counts, and a group without a number has -infinity. One
/// thread.
class RowMaxima {
 public:
  static constexpr size_t kGroup = 32;

  void read(std::span<const float> row);

  /// -infinity for a row without a number above it.
  float max() const { return max_; }
  std::span<const float> groups() const { return groups_; }

  /// A value that at least min(count, row) elements are not below, and not many more are.
  float floor_of(size_t count);

  /// Index of the first element equal to `value`, or row.size(). Requires the row that was read.
  size_t find(std::span<const float> row, float value) const;

  /// Calls fn(index) for the elements of each group whose largest one `wants`, by ascending index.
  template <class Wants, class F>
  void for_each(std::span<const float> row, Wants wants, F fn) const {
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (!wants(groups_[g])) continue;
      const size_t end = row.size() - g * kGroup < kGroup ? row.size() : (g + 1) * kGroup;
      for (size_t i = g * kGroup; i < end; ++i) fn(i);
    }
  }

 private:
  float max_ = kNoLogit;
  std::vector<float> groups_;
  std::vector<float> sorted_;
};

/// The sum of exp((x - max) * scale) over the row; NaN and -infinity add nothing. When `weights` is
/// not null it receives each element's term. Requires max finite and scale > 0. The result does not
/// depend on the machine's vector width.
double exp_sum(std::span<const float> row, float max, float scale, float* weights);

}  // namespace tandem::sample
