#include "sample/filters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sample/row_math.h"

namespace tandem::sample {
namespace {

constexpr size_t kBins = 256;
constexpr float kBinsPerUnit = 8;  // a bin is 1/8 of a logit below the largest one

/// Bin 0 holds the largest logits; the last one everything far below. Requires logit > -infinity.
size_t bin(float logit, float max) {
  const float below = (max - logit) * kBinsPerUnit;
  return below < static_cast<float>(kBins - 1) ? static_cast<size_t>(below) : kBins - 1;
}

/// The smallest logit of those that stay when the mass above a token must be below `room`.
/// Selection halves the range by logit until it is small enough to sort.
float mass_floor(std::vector<std::pair<float, float>>& items, double room) {
  auto begin = items.begin(), end = items.end();
  double above = 0;
  const auto larger = [](const auto& a, const auto& b) { return a.first > b.first; };
  while (end - begin > 64) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, larger);
    double mass = 0;
    for (auto at = begin; at != middle; ++at) mass += double{at->second};
    if (above + mass >= room) {
      end = middle;
    } else {
      above += mass;
      begin = middle;
    }
  }
  std::sort(begin, end, larger);
  float floor = begin->first;
  for (auto at = begin; at != end && above < room; ++at) {
    floor = at->first;
    above += double{at->second};
  }
  return floor;
}

}  // namespace

bool Filters::any(const gen::Sampling& sampling, size_t vocab) {
  return uses_top_p(sampling.top_p) || sampling.min_p > 0 || sampling.xtc_probability > 0 ||
         (sampling.top_k > 0 && sampling.top_k < vocab);
}

float Filters::top_p_floor(std::span<const float> row, float max, float top_p) {
  weights_.resize(row.size());
  const double room = exp_sum(row, max, 1, weights_.data()) * double{top_p};
  std::array<double, kBins> masses{};
  for (size_t i = 0; i < row.size(); ++i) {
    if (weights_[i] > 0) masses[bin(row[i], max)] += double{weights_[i]};
  }
  size_t crossing = 0;
  double above = 0;
  while (crossing + 1 < kBins && above + masses[crossing] < room) above += masses[crossing++];
  std::vector<std::pair<float, float>> items;
  for (size_t i = 0; i < row.size(); ++i) {
    if (weights_[i] > 0 && bin(row[i], max) == crossing) items.emplace_back(row[i], weights_[i]);
  }
  return items.empty() ? max - static_cast<float>(crossing) / kBinsPerUnit
                       : mass_floor(items, room - above);
}

float Filters::top_k_floor(std::span<const float> row, float max, uint32_t top_k) {
  std::array<uint32_t, kBins> counts{};
  for (const float logit : row) {
    if (logit > kNoLogit) ++counts[bin(logit, max)];
  }
  uint32_t above = 0;
  for (size_t i = 0; i + 1 < kBins; ++i) {
    above += counts[i];
    // A full bin of slack: gather() compares logits, not bins, and both round.
    if (above >= top_k) return max - static_cast<float>(i + 2) / kBinsPerUnit;
  }
  return kNoLogit;
}

void Filters::gather(std::span<const float> row, float floor) {
  kept_.clear();
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] >= floor && row[i] > kNoLogit)
      kept_.push_back({static_cast<gen::TokenId>(i), row[i]});
  }
}

void Filters::drop_top_choices(float max, const gen::Sampling& sampling) {
  double total = 0;
  for (const Candidate& at : kept_) total += std::exp(double{at.logit} - double{max});
  float least = std::numeric_limits<float>::infinity();
  for (const Candidate& at : kept_) {
    const double probability = std::exp(double{at.logit} - double{max}) / total;
    if (probability > double{sampling.xtc_threshold}) least = std::min(least, at.logit);
  }
  const auto& exempt = sampling.xtc_exempt;
  std::erase_if(kept_, [&](const Candidate& at) {
    return at.logit > least && std::find(exempt.begin(), exempt.end(), at.id) == exempt.end();
  });
}

void Filters::keep_largest(uint32_t top_k) {
  if (top_k >= kept_.size()) return;
  const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(top_k);
  std::nth_element(kept_.begin(), end, kept_.end(), likelier);
  kept_.erase(end, kept_.end());
  std::sort(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
}

std::span<const Candidate> Filters::keep(std::span<const float> row,
                                         float max,
                                         const gen::Sampling& sampling,
                                         bool xtc) {
  float floor = kNoLogit;
  if (uses_top_p(sampling.top_p)) floor = top_p_floor(row, max, sampling.top_p);
  if (sampling.min_p > 0) floor = std::max(floor, max + std::log(std::min(sampling.min_p, 1.0F)));
  const bool uses_top_k = sampling.top_k > 0 && sampling.top_k < row.size();
  if (uses_top_k && !xtc) floor = std::max(floor, top_k_floor(row, max, sampling.top_k));
  gather(row, floor);
  if (xtc) drop_top_choices(max, sampling);
  if (uses_top_k) keep_largest(sampling.top_k);
  return kept_;
}

}  // namespace tandem::sample
