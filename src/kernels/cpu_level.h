// The instruction sets that kernels are built for, and the one to use on this machine.
#pragma once

#include <cstdint>

namespace tandem::kernels {

/// Results of one level are bit-reproducible; different levels agree within float32 rounding.
enum class CpuLevel : uint8_t {
  kPortable,  // what the compiler makes of plain C++ for the baseline of the target
  kAvx2,      // x86-64 with AVX2, FMA and F16C
};

/// The best level that this machine runs and this build contains.
CpuLevel detect_cpu_level();

/// "portable" or "avx2".
const char* name(CpuLevel level);

}  // namespace tandem::kernels
