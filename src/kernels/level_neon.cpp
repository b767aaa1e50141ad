// Only called on AArch64, where NEON is part of the baseline.
#include "kernels/kernel_table.h"

#if defined(__aarch64__)
#include "kernels/level_kernels.h"
#include "kernels/simd_neon.h"

namespace tandem::kernels {

const KernelTable& neon_kernels() {
  static constexpr KernelTable kTable = table_for<NeonVec>();
  return kTable;
}

}  // namespace tandem::kernels
#else

namespace tandem::kernels {

const KernelTable& neon_kernels() { return portable_kernels(); }

}  // namespace tandem::kernels
#endif
