#include "kernels/norm.h"

#include "kernels/kernel_table.h"
#include "kernels/share.h"

namespace tandem::kernels {

void rms_norm(WorkerPool& pool, const RmsNormArgs& given) {
  RmsNormArgs args = given;
  if (args.x_stride == 0) args.x_stride = args.width;
  if (args.out_stride == 0) args.out_stride = args.width;
  const KernelTable& kernels = kernels_of(pool.level());
  share_rows(pool, args.rows, args.width,
             [&](size_t begin, size_t end) { kernels.rms_norm(args, begin, end); });
}

void sum_squares(WorkerPool& pool, const SquareSumArgs& given) {
  SquareSumArgs args = given;
  if (args.x_stride == 0) args.x_stride = args.width;
  const KernelTable& kernels = kernels_of(pool.level());
  share_rows(pool, args.rows, args.width,
             [&](size_t begin, size_t end) { kernels.sum_squares(args, begin, end); });
}

void add_rms_norm(WorkerPool& pool, const RmsNormArgs& given, const AddendArgs& addend) {
  const size_t width = given.width;
  const size_t x_stride = given.x_stride == 0 ? width : given.x_stride;
  const size_t y_stride = addend.y_stride == 0 ? width : addend.y_stride;
  RmsNormArgs args = given;
  args.x = addend.sum;
  args.x_stride = width;
  if (args.out_stride == 0) args.out_stride = width;
  const KernelTable& kernels = kernels_of(pool.level());
  share_rows(pool, args.rows, 2 * width, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const float* x = given.x + r * x_stride;
      const float* y = addend.y + r * y_stride;
      float* sum = addend.sum + r * width;
      for (size_t i = 0; i < width; ++i) sum[i] = x[i] + y[i];
      kernels.rms_norm(args, r, r + 1);
    }
  });
}

}  // namespace tandem::kernels
