#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tandem::kernels {
namespace {

/// One query over its keys in order.
void attend(const AttentionArgs& args, const AttentionRow& row, size_t token, size_t head) {
  const size_t d = args.head_dim;
  const size_t stride = args.q_stride == 0 ? args.heads * d : args.q_stride;
  const size_t position = row.start + token;
  const size_t first =
      args.window == 0 || position + 1 <= args.window ? 0 : position + 1 - args.window;
  const float* q = args.q + (row.first_token + token) * stride + head * d;
  float* out = args.out + ((row.first_token + token) * args.heads + head) * d;
  const auto at = [&](size_t p) {
    const size_t slot = row.pages[p / args.page_tokens] * args.page_tokens + p % args.page_tokens;
    return (slot * args.kv_heads + args.kv_head_of[head]) * d;
  };
  std::vector<float> scores;
  for (size_t p = first; p <= position; ++p) {
    float score = 0.0f;
    for (size_t i = 0; i < d; ++i) score += q[i] * args.k_pool[at(p) + i];
    score *= args.scale;
    if (args.softcap > 0.0f) score = args.softcap * std::tanh(score / args.softcap);
    scores.push_back(score);
  }
  float most = *std::max_element(scores.begin(), scores.end());
  if (args.sinks != nullptr) most = std::max(most, args.sinks[head]);
  float total = args.sinks == nullptr ? 0.0f : std::exp(args.sinks[head] - most);
  std::fill(out, out + d, 0.0f);
  for (size_t p = first; p <= position; ++p) {
    const float weight = std::exp(scores[p - first] - most);
    total += weight;
    for (size_t i = 0; i < d; ++i) out[i] += weight * args.v_pool[at(p) + i];
  }
  for (size_t i = 0; i < d; ++i) out[i] /= total;
}

}  // namespace

void attention(WorkerPool& pool, const AttentionArgs& args) {
  for (const AttentionRow& row : args.rows) {
    pool.parallel_for(row.count * args.heads, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) attend(args, row, i / args.heads, i % args.heads);
    });
  }
}

}  // namespace tandem::kernels
