#include "kernels/matmul.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/kernel_table.h"
#include "kernels/matmul_task.h"
#include "kernels/share.h"

namespace tandem::kernels {
namespace {

/// `total` rows in as few parts of at most `most` as possible, parts of whole tiles.
size_t even_part(size_t total, size_t most) {
  const size_t parts = (total + most - 1) / most;
  const size_t part = (total + parts - 1) / parts;
  return parts == 1 ? part : RowCodes::padded(part);
}

void multiply(WorkerPool& pool, MatmulTask& task) {
  const KernelTable& kernels = kernels_of(pool.level());
  const PackedMatrix& w = *task.w;
  const size_t rows = task.args.rows;
  task.row_block = even_part(rows, MatmulTask::kRowBlock);
  if (task.takes_codes()) {
    task.groups = w.inputs() / w.group();
    float* memory = pool.shared_scratch(RowCodes::floats(rows, w.inputs(), task.groups));
    task.rows = RowCodes::at(memory, rows, w.inputs(), task.groups);
    share_rows(pool, rows, w.inputs(), [&](size_t begin, size_t end) {
      kernels.prepare(task, task.args.x, task.args.x_stride, begin, end);
    });
  }
  pool.parallel_for(task.items(), [&](size_t begin, size_t end, size_t worker) {
    float* scratch = pool.scratch(worker, task.scratch_floats());
    kernels.matmul(task, begin, end, scratch);
  });
}

}  // namespace

void matmul(WorkerPool& pool, const PackedMatrix& w, const MatmulArgs& given) {
  if (given.rows == 0 || w.outputs() == 0) return;
  MatmulArgs args = given;
  if (args.x_stride == 0) args.x_stride = w.inputs();
  if (args.y_stride == 0) args.y_stride = w.outputs();
  TANDEM_CHECK(args.x_stride >= w.inputs() || args.rows == 1, "[matmul] rows of x overlap");
  TANDEM_CHECK(args.y_stride >= w.outputs() || args.rows == 1, "[matmul] rows of y overlap");
  const size_t chunk = even_part(given.rows, MatmulTask::kRowChunk);
  for (size_t row = 0; row < given.rows; row += chunk) {
    MatmulTask task{.w = &w, .args = args};
    task.args.rows = std::min(chunk, given.rows - row);
    task.args.x += row * args.x_stride;
    task.args.y += row * args.y_stride;
    multiply(pool, task);
  }
}

}  // namespace tandem::kernels
