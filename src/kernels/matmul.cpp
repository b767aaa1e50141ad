#include "kernels/matmul.h"

#include "base/check.h"
#include "kernels/kernel_table.h"
#include "kernels/matmul_task.h"
#include "kernels/share.h"

namespace tandem::kernels {

void matmul(WorkerPool& pool, const PackedMatrix& w, const MatmulArgs& args) {
  if (args.rows == 0 || w.outputs() == 0) return;
  MatmulTask task{.w = &w, .args = args, .sums = nullptr};
  if (task.args.x_stride == 0) task.args.x_stride = w.inputs();
  if (task.args.y_stride == 0) task.args.y_stride = w.outputs();
  TANDEM_CHECK(task.args.x_stride >= w.inputs() || args.rows == 1, "[matmul] rows of x overlap");
  TANDEM_CHECK(task.args.y_stride >= w.outputs() || args.rows == 1, "[matmul] rows of y overlap");

  const KernelTable& kernels = kernels_of(pool.level());
  if (w.is_quantized()) {
    task.sums = pool.shared_scratch(args.rows * task.groups());
    share_rows(pool, args.rows, w.inputs(),
               [&](size_t begin, size_t end) { kernels.sum_groups(task, begin, end); });
  }
  pool.parallel_for(task.items(), [&](size_t begin, size_t end, size_t worker) {
    float* scratch = pool.scratch(worker, MatmulTask::kScratchFloats);
    kernels.matmul(task, begin, end, scratch);
  });
}

}  // namespace tandem::kernels
