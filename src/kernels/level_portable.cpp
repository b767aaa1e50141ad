#include "kernels/kernel_table.h"

#if !defined(__aarch64__)
#include "kernels/level_kernels.h"
#include "kernels/simd_portable.h"

namespace tandem::kernels {

const KernelTable& portable_kernels() {
  static constexpr KernelTable kTable = table_for<PortableVec>();
  return kTable;
}

}  // namespace tandem::kernels
#else

namespace tandem::kernels {

const KernelTable& portable_kernels() { return neon_kernels(); }

}  // namespace tandem::kernels
#endif
