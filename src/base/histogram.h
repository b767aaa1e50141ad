// How often values lay under fixed bounds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

/// A bound belongs to the values under it. One thread.
class Histogram {
 public:
  /// Requires rising bounds.
  explicit Histogram(std::vector<double> bounds);

  /// Counts a value so many times.
  void add(double value, uint64_t times = 1);

  /// Adds what another histogram with the same bounds counted; other counts are left out.
  void add(std::span<const uint64_t> counts, double sum);

  const std::vector<double>& bounds() const { return bounds_; }
  /// One a bound, then those above the last one; not cumulative.
  const std::vector<uint64_t>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

/// Bounds in seconds for what a request waits for.
std::vector<double> long_times();

/// Bounds in seconds for a token or a step.
std::vector<double> token_times();

}  // namespace tandem
