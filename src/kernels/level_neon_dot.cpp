// Compiled for CpuLevel::kNeonDot (levels.cmake); only called where the CPU has it.
#include "kernels/kernel_table.h"

#if defined(__ARM_FEATURE_DOTPROD)
#include "kernels/dot_matmul_kernel.h"
#include "kernels/matmul_kernel.h"
#include "kernels/row_codes_kernel.h"

namespace tandem::kernels {
namespace {

void prepare_neon_dot(
    const MatmulTask& task, const float* x, size_t x_stride, size_t begin, size_t end) {
  const SplitRows rows(task);
  quantize_rows<NeonVec>(task, x, x_stride, begin, end,
                         [&](NeonVec code, size_t row, size_t column)
                             __attribute__((always_inline)) { rows.store(code, row, column); });
}

void matmul_neon_dot(const MatmulTask& task, size_t begin, size_t end, float* scratch) {
  if (!task.takes_codes()) return neon_kernels().matmul(task, begin, end, scratch);
  run_quantized<DotKernel>(task, begin, end, scratch);
}

}  // namespace

const KernelTable& neon_dot_kernels() {
  static const KernelTable table = [] {
    KernelTable out = neon_kernels();
    out.prepare = prepare_neon_dot;
    out.matmul = matmul_neon_dot;
    return out;
  }();
  return table;
}

}  // namespace tandem::kernels
#else

namespace tandem::kernels {

const KernelTable& neon_dot_kernels() { return neon_kernels(); }

}  // namespace tandem::kernels
#endif
