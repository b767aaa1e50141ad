// The instruction sets that kernels are built for, and the one to use on this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tandem::kernels {

/// Results of one level are bit-reproducible; different levels agree within float32 rounding, and
/// quantized products of all that fuse multiply-adds bit for bit. Each x86-64 level needs what the
/// ones before it need.
enum class CpuLevel : uint8_t {
  kPortable,  // what the compiler makes of plain C++ for the baseline of the target
  kAvx2,      // AVX2, FMA and F16C
  kAvx512,    // AVX-512 F, BW, DQ, VL and VNNI
  kAmx,       // AMX tiles with int8
};

/// The best level that this machine runs and this build contains. Asks the kernel for the use of
/// AMX tiles, the first time.
CpuLevel detect_cpu_level();

/// Those that this machine runs, from the least to the best.
std::vector<CpuLevel> cpu_levels();

/// "portable", "avx2", "avx512" or "amx".
const char* name(CpuLevel level);

/// The level of that name.
std::optional<CpuLevel> cpu_level_named(std::string_view name);

}  // namespace tandem::kernels
