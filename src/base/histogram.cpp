#include "base/histogram.h"

#include <algorithm>
#include <utility>

namespace tandem {

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::add(double value, uint64_t times) {
  const auto place = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  counts_[static_cast<size_t>(place - bounds_.begin())] += times;
  sum_ += value * static_cast<double>(times);
}

void Histogram::add(std::span<const uint64_t> counts, double sum) {
  if (counts.size() != counts_.size()) return;
  for (size_t i = 0; i < counts.size(); ++i) counts_[i] += counts[i];
  sum_ += sum;
}

std::vector<double> long_times() {
  return {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};
}

std::vector<double> token_times() {
  return {0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 5};
}

}  // namespace tandem
