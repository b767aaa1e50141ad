#include "kernels/cpu_level.h"

#include "kernels/kernel_table.h"

namespace tandem::kernels {

CpuLevel detect_cpu_level() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
    return CpuLevel::kAvx2;
  }
#endif
  return CpuLevel::kPortable;
}

const char* name(CpuLevel level) { return level == CpuLevel::kAvx2 ? "avx2" : "portable"; }

const KernelTable& kernels_of(CpuLevel level) {
  return level == CpuLevel::kAvx2 ? avx2_kernels() : portable_kernels();
}

}  // namespace tandem::kernels
