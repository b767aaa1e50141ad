#include "kernels/norm.h"

#include "kernels/kernel_table.h"
#include "kernels/share.h"

namespace tandem::kernels {
namespace {

void run(WorkerPool& pool, RmsNormArgs args, float* residual) {
  if (args.x_stride == 0) args.x_stride = args.width;
  if (args.out_stride == 0) args.out_stride = args.width;
  const KernelTable& kernels = kernels_of(pool.level());
  share_rows(pool, args.rows, args.width,
             [&](size_t begin, size_t end) { kernels.rms_norm(args, residual, begin, end); });
}

}  // namespace

void rms_norm(WorkerPool& pool, const RmsNormArgs& args) { run(pool, args, nullptr); }

void rms_norm_add(WorkerPool& pool, const RmsNormArgs& args, float* residual) {
  run(pool, args, residual);
}

}  // namespace tandem::kernels
