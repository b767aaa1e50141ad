#include "kernels/gated_delta.h"

#include <algorithm>
#include <cmath>

#include "kernels/kernel_table.h"
#include "kernels/share.h"

namespace tandem::kernels {
namespace {

float softplus(float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::fabs(x))); }

void put_gates(const GatedDeltaArgs& args, size_t token, const DeltaToken& to) {
  const float* a = args.a + token * args.a_stride;
  const float* b = args.b + token * args.b_stride;
  const size_t decays = args.decays();
  for (size_t h = 0; h < args.value_heads; ++h) {
    const float rate = -std::exp(args.a_log[h]);
    for (size_t i = h * decays; i < (h + 1) * decays; ++i)
      to.g[i] = std::exp(rate * softplus(a[i] + args.dt_bias[i]));
    to.beta[h] = 1.0f / (1.0f + std::exp(-b[h]));
  }
}

void put_steps(const GatedDeltaArgs& args, size_t token, const DeltaToken& to) {
  for (size_t h = 0; h < args.value_heads; ++h) {
    const float a = args.a == nullptr ? 0 : args.a[token * args.a_stride + h];
    to.beta[h] = std::clamp(softplus(a + args.dt_bias[h]), args.least_dt, args.most_dt);
    to.g[h] = std::exp(-std::exp(args.a_log[h]) * to.beta[h]);
  }
}

size_t or_else(size_t stride, size_t without_gaps) { return stride == 0 ? without_gaps : stride; }

}  // namespace

void gated_delta(WorkerPool& pool, const GatedDeltaArgs& given) {
  GatedDeltaArgs args = given;
  args.q_stride = or_else(args.q_stride, args.key_heads * args.key_dim);
  args.k_stride = or_else(args.k_stride, args.key_heads * args.key_dim);
  args.v_stride = or_else(args.v_stride, args.value_heads * args.value_dim);
  args.a_stride = or_else(args.a_stride, args.value_heads * args.decays());
  args.b_stride = or_else(args.b_stride, args.value_heads);
  args.state_stride = or_else(args.state_stride, args.value_heads * args.head_floats());
  size_t tokens = 0;
  for (const StateRow& row : args.rows) tokens = std::max(tokens, row.first_token + row.count);
  const KernelTable& kernels = kernels_of(pool.level());
  float* prepared = pool.shared_scratch(tokens * DeltaToken::floats(args));
  constexpr size_t kExpCost = 16;
  const size_t cost =
      4 * args.key_heads * args.key_dim + kExpCost * args.value_heads * args.decays();
  share_rows(pool, tokens, cost, [&](size_t begin, size_t end) {
    kernels.normalize_delta(args, prepared, begin, end);
    const auto put = args.form == DeltaForm::kSsd ? put_steps : put_gates;
    for (size_t t = begin; t < end; ++t) put(args, t, DeltaToken::at(args, prepared, t));
  });
  const size_t blocks = (args.value_dim + kDeltaColumns - 1) / kDeltaColumns;
  pool.parallel_for(args.rows.size() * args.value_heads * blocks,
                    [&](size_t begin, size_t end, size_t worker) {
                      float* scratch = pool.scratch(worker, args.key_dim * kDeltaColumns);
                      kernels.gated_delta(args, prepared, scratch, begin, end);
                    });
}

}  // namespace tandem::kernels
