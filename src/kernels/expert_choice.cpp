#include "kernels/expert_choice.h"

#include <algorithm>
#include <cmath>

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

void choose_of_row(const ExpertChoiceArgs& args, size_t row) {
  const float* logits = args.logits + row * args.logits_stride;
  uint32_t* ids = args.ids + row * args.top_k;
  float* weights = args.weights + row * args.top_k;
  const float most = *std::max_element(logits, logits + args.experts);
  float sum = 0;
  for (size_t e = 0; e < args.experts; ++e) sum += std::exp(logits[e] - most);
  const float scale = 1 / sum;
  size_t held = 0;
  for (size_t e = 0; e < args.experts; ++e) {
    const float p = std::exp(logits[e] - most) * scale;
    held = insert_expert(ids, weights, held, args.top_k, static_cast<uint32_t>(e), p);
  }
  if (!args.renormalizes) return;
  float chosen = 0;
  for (size_t k = 0; k < args.top_k; ++k) chosen += weights[k];
  for (size_t k = 0; k < args.top_k; ++k) weights[k] /= chosen;
}

}  // namespace

void choose_experts(WorkerPool& pool, const ExpertChoiceArgs& given) {
  TANDEM_CHECK(given.top_k >= 1 && given.top_k <= given.experts, "[experts] {} of {}", given.top_k,
               given.experts);
  ExpertChoiceArgs args = given;
  if (args.logits_stride == 0) args.logits_stride = args.experts;
  share_rows(pool, args.rows, args.experts * kCostOfExpert, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) choose_of_row(args, row);
  });
}

}  // namespace tandem::kernels
