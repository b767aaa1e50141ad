#include "kernels/activation.h"

#include "kernels/kernel_table.h"
#include "kernels/share.h"

namespace tandem::kernels {
namespace {

constexpr size_t kExpCost = 4;  // of an exponential, in floats touched

void gated(WorkerPool& pool, GatedArgs args, Gate gate) {
  if (args.gate_stride == 0) args.gate_stride = args.width;
  if (args.up_stride == 0) args.up_stride = args.width;
  if (args.out_stride == 0) args.out_stride = args.width;
  const KernelTable& kernels = kernels_of(pool.level());
  share_rows(pool, args.rows, args.width * kExpCost,
             [&](size_t begin, size_t end) { kernels.gated(args, gate, begin, end); });
}

}  // namespace

void swiglu(WorkerPool& pool, const GatedArgs& args) { gated(pool, args, Gate::kSilu); }

void geglu_tanh(WorkerPool& pool, const GatedArgs& args) { gated(pool, args, Gate::kGeluTanh); }

void sigmoid_gated(WorkerPool& pool, const GatedArgs& args) { gated(pool, args, Gate::kSigmoid); }
void clamped_swiglu(WorkerPool& pool, const GatedArgs& args) { gated(pool, args, Gate::kClamped); }
void relu_gated(WorkerPool& pool, const GatedArgs& args) { gated(pool, args, Gate::kRelu); }

void add(WorkerPool& pool, float* y, const float* x, size_t count) {
  share_rows(pool, count, 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) y[i] += x[i];
  });
}

void scale(WorkerPool& pool, float* y, float factor, size_t count) {
  share_rows(pool, count, 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) y[i] *= factor;
  });
}

void softcap(WorkerPool& pool, float* x, float cap, size_t count) {
  const KernelTable& kernels = kernels_of(pool.level());
  share_rows(pool, count, kExpCost,
             [&](size_t begin, size_t end) { kernels.softcap(x, cap, begin, end); });
}

}  // namespace tandem::kernels
