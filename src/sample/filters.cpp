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

/// Tokens with logits below this are more than top_p can reach: all of them together weigh less
/// than half of what it leaves out. -infinity where rounding may count.
float light_below(double total, float max, size_t tokens, double top_p) {
  constexpr double kLeastRest = 1e-3;
  if (1 - top_p < kLeastRest) return kNoLogit;
  const double weight = total * (1 - top_p) / 2 / static_cast<double>(tokens);
  return static_cast<float>(double{max} + std::log(weight));
}

}  // namespace

bool Filters::any(const gen::Sampling& sampling, size_t vocab) {
  return uses_top_p(sampling.top_p) || sampling.min_p > 0 || sampling.xtc_probability > 0 ||
         (sampling.top_k > 0 && sampling.top_k < vocab);
}

float Filters::top_p_floor(std::span<const float> row, const RowMaxima& maxima, float top_p) {
  const float max = maxima.max();
  const double total = exp_sum(row, max, 1, nullptr);
  const double room = total * double{top_p};
  gather(row, maxima, light_below(total, max, row.size(), double{top_p}));
  logits_.clear();
  for (const Candidate& at : kept_) logits_.push_back(at.logit);
  weights_.resize(logits_.size());
  exp_sum(logits_, max, 1, weights_.data());
  std::array<double, kBins> masses{};
  for (size_t i = 0; i < logits_.size(); ++i) {
    if (weights_[i] > 0) masses[bin(logits_[i], max)] += double{weights_[i]};
  }
  size_t crossing = 0;
  double above = 0;
  while (crossing + 1 < kBins && above + masses[crossing] < room) above += masses[crossing++];
  std::vector<std::pair<float, float>> items;
  for (size_t i = 0; i < logits_.size(); ++i) {
    if (weights_[i] > 0 && bin(logits_[i], max) == crossing)
      items.emplace_back(logits_[i], weights_[i]);
  }
  return items.empty() ? max - static_cast<float>(crossing) / kBinsPerUnit
                       : mass_floor(items, room - above);
}

void Filters::gather(std::span<const float> row, const RowMaxima& maxima, float floor) {
  kept_.clear();
  maxima.for_each(
      row, [floor](float largest) { return largest >= floor && largest > kNoLogit; },
      [&](size_t i) {
        if (row[i] >= floor && row[i] > kNoLogit)
          kept_.push_back({static_cast<gen::TokenId>(i), row[i]});
      });
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
                                         RowMaxima& maxima,
                                         const gen::Sampling& sampling,
                                         bool xtc) {
  const float max = maxima.max();
  float floor = kNoLogit;
  if (uses_top_p(sampling.top_p)) floor = top_p_floor(row, maxima, sampling.top_p);
  if (sampling.min_p > 0) floor = std::max(floor, max + std::log(std::min(sampling.min_p, 1.0F)));
  const bool uses_top_k = sampling.top_k > 0 && sampling.top_k < row.size();
  if (uses_top_k && !xtc) floor = std::max(floor, maxima.floor_of(sampling.top_k));
  gather(row, maxima, floor);
  if (xtc) drop_top_choices(max, sampling);
  if (uses_top_k) keep_largest(sampling.top_k);
  return kept_;
}

}  // namespace tandem::sample
