// Compiled for CpuLevel::kAvx512 (levels.cmake); only called where the CPU has it.
#include "kernels/kernel_table.h"

#if defined(__AVX512VNNI__)
#include "kernels/attention_kernel.h"
#include "kernels/key_scores_kernel.h"
#include "kernels/matmul_kernel.h"
#include "kernels/row_codes_kernel.h"
#include "kernels/simd_avx512.h"

namespace tandem::kernels {

const KernelTable& avx512_kernels() {
  static const KernelTable table = [] {
    KernelTable out = avx2_kernels();
    out.prepare = prepare_rows<Avx512Vec>;
    out.matmul = matmul_range<Avx512Vec>;
    out.attend_span = attend_span<Avx512Vec>;
    out.join_spans = join_spans<Avx512Vec>;
    out.finish_span = finish_span<Avx512Vec>;
    out.score_keys = score_keys<Avx512Vec>;
    return out;
  }();
  return table;
}

}  // namespace tandem::kernels
#else

namespace tandem::kernels {

const KernelTable& avx512_kernels() { return avx2_kernels(); }

}  // namespace tandem::kernels
#endif
