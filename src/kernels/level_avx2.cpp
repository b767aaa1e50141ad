// Compiled with -mavx2 -mfma -mf16c (src/CMakeLists.txt); only called where the CPU has them.
#include "kernels/kernel_table.h"

#if defined(__AVX2__)
#include "kernels/level_kernels.h"
#include "kernels/simd_avx2.h"

namespace tandem::kernels {

const KernelTable& avx2_kernels() {
  static constexpr KernelTable kTable = table_for<Avx2Vec>();
  return kTable;
}

}  // namespace tandem::kernels
#else

namespace tandem::kernels {

const KernelTable& avx2_kernels() { return portable_kernels(); }

}  // namespace tandem::kernels
#endif
