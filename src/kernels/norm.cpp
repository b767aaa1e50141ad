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

}  // namespace tandem::kernels
