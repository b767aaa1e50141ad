// The instruction sets that kernels are built for, and the one to use on this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tandem::kernels {

/// Results of one level are bit-reproducible; different levels agree within float32 rounding, and
/// quantized products of all that fuse multiply-adds bit for bit. Each level of a target needs what
/// those before it need.
enum class CpuLevel : uint8_t {
  kPortable,  // plain C++ for the baseline of the target; on AArch64 the same as kNeon
  kAvx2,      // AVX2, FMA and F16C
  kAvx512,    // AVX-512 F, BW, DQ, VL and VNNI
  kAmx,       // AMX tiles with int8 and bf16
  kNeon,      // AArch64, whose baseline has NEON
  kNeonDot,   // AArch64 with dot products of bytes
};

/// The best level that this machine runs and this build contains. Asks the kernel for the use of
/// AMX tiles, the first time.
CpuLevel detect_cpu_level();

/// Whether this machine runs the level and this build contains it.
bool can_run(CpuLevel level);

/// Those that it runs, from the least to the best, each kernel once.
std::vector<CpuLevel> cpu_levels();

/// "portable", "avx2", "avx512", "amx", "neon" or "neon_dot".
const char* name(CpuLevel level);

/// The level of that name.
std::optional<CpuLevel> cpu_level_named(std::string_view name);

}  // namespace tandem::kernels
