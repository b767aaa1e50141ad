#include "kernels/expert_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/share.h"

namespace tandem::kernels {
namespace {

constexpr size_t kCostOfExpert = 16;  // in floats touched: an exponential and a comparison

/// Puts an expert in its place among the `held` best so far, of which there may be top_k.
/// Comparisons with NaN are false, so such an expert goes last, or is left out.
size_t insert_expert(
    uint32_t* ids, float* values, size_t held, size_t top_k, uint32_t id, float p) {
  size_t at = held;
  while (at > 0 && p >= values[at - 1]) --at;
  if (at == top_k) return held;
  const size_t last = std::min(held, top_k - 1);
  std::copy_backward(ids + at, ids + last, ids + last + 1);
  std::copy_backward(values + at, values + last, values + last + 1);
  ids[at] = id;
  values[at] = p;
  return last + 1;
}

/// What a row needs beside its result: kept from row to row.
struct Scratch {
  std::vector<float> scores;  // [experts]
  std::vector<float> values;  // by which is chosen
  std::vector<std::pair<float, size_t>> groups;
};

void score_softmax(const float* logits, std::vector<float>& scores) {
  const float most = *std::max_element(logits, logits + scores.size());
  float sum = 0;
  for (size_t e = 0; e < scores.size(); ++e) sum += scores[e] = std::exp(logits[e] - most);
  const float scale = 1 / sum;
  for (float& each : scores) each *= scale;
}

void score_sigmoid(const float* logits, std::vector<float>& scores) {
  for (size_t e = 0; e < scores.size(); ++e) scores[e] = 1 / (1 + std::exp(-logits[e]));
}

/// Sets the values of experts in all but the best groups to 0, or below any score.
void drop_groups(const ExpertRouting& routing, Scratch& scratch) {
  const size_t size = scratch.values.size() / routing.groups;
  scratch.groups.clear();
  for (size_t g = 0; g < routing.groups; ++g) {
    const float* group = scratch.values.data() + g * size;
    float best = group[0], second = -std::numeric_limits<float>::infinity();
    for (size_t e = 1; e < size; ++e) {
      second = std::max(second, std::min(best, group[e]));
      best = std::max(best, group[e]);
    }
    const float value = routing.weighs_groups_by_best
                            ? best
                            : best + second;  // sorted below, for which NaN has no place
    scratch.groups.emplace_back(std::isnan(value) ? -std::numeric_limits<float>::infinity() : value,
                                g);
  }
  std::sort(scratch.groups.begin(), scratch.groups.end());
  const float out = routing.leaves_groups_out ? -std::numeric_limits<float>::infinity() : 0.0F;
  for (size_t i = 0; i < routing.groups - routing.top_groups; ++i) {
    const auto first =
        scratch.values.begin() + static_cast<std::ptrdiff_t>(scratch.groups[i].second * size);
    std::fill_n(first, size, out);
  }
}

void choose_of_row(const ExpertChoiceArgs& args, size_t row, Scratch& scratch) {
  const ExpertRouting& routing = args.routing;
  const float* logits = args.logits + row * args.logits_stride;
  uint32_t* ids = args.ids + row * args.top_k;
  float* weights = args.weights + row * args.top_k;
  scratch.scores.resize(args.experts);
  if (routing.score == ExpertScore::kSoftmax)
    score_softmax(logits, scratch.scores);
  else
    score_sigmoid(logits, scratch.scores);
  scratch.values = scratch.scores;
  if (args.bias != nullptr)
    for (size_t e = 0; e < args.experts; ++e) scratch.values[e] += args.bias[e];
  if (routing.top_groups < routing.groups) drop_groups(routing, scratch);
  size_t held = 0;
  for (size_t e = 0; e < args.experts; ++e)
    held =
        insert_expert(ids, weights, held, args.top_k, static_cast<uint32_t>(e), scratch.values[e]);
  float chosen = 0;
  for (size_t k = 0; k < args.top_k; ++k) chosen += weights[k] = scratch.scores[ids[k]];
  if (routing.renormalizes)
    for (size_t k = 0; k < args.top_k; ++k) weights[k] /= chosen;
  if (routing.scale != 1)
    for (size_t k = 0; k < args.top_k; ++k) weights[k] *= routing.scale;
}

}  // namespace

void choose_experts(WorkerPool& pool, const ExpertChoiceArgs& given) {
  TANDEM_CHECK(given.top_k >= 1 && given.top_k <= given.experts, "[experts] {} of {}", given.top_k,
               given.experts);
  const ExpertRouting& routing = given.routing;
  TANDEM_CHECK(routing.top_groups >= 1 && routing.top_groups <= routing.groups &&
                   given.experts % routing.groups == 0 &&
                   (routing.groups == 1 || given.experts / routing.groups >= 2),
               "[experts] {} of {} groups", routing.top_groups, routing.groups);
  ExpertChoiceArgs args = given;
  if (args.logits_stride == 0) args.logits_stride = args.experts;
  share_rows(pool, args.rows, args.experts * kCostOfExpert, [&](size_t begin, size_t end) {
    Scratch scratch;
    for (size_t row = begin; row < end; ++row) choose_of_row(args, row, scratch);
  });
}

}  // namespace tandem::kernels
