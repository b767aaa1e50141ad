#include "kernels/cpu_level.h"

#include "kernels/kernel_table.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace tandem::kernels {
namespace {

constexpr CpuLevel kAll[] = {CpuLevel::kPortable, CpuLevel::kAvx2, CpuLevel::kAvx512,
                             CpuLevel::kAmx,      CpuLevel::kNeon, CpuLevel::kNeonDot};

#if defined(__x86_64__)
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

/// Linux saves tile registers only of processes that asked for it.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25;
  constexpr unsigned kWanted = kBf16 | kTile | kInt8;
  return (d & kWanted) == kWanted && may_use_tiles();
}
#endif

#if defined(__aarch64__)
bool has_dot_products() {
#if defined(__linux__)
  constexpr unsigned long kDotProducts = 1ul << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & kDotProducts) != 0;
#else
  return true;  // every Mac has them
#endif
}
#endif

CpuLevel detect() {
#if defined(__x86_64__)
  if (!has_avx2()) return CpuLevel::kPortable;
  if (!has_avx512()) return CpuLevel::kAvx2;
  return has_amx() ? CpuLevel::kAmx : CpuLevel::kAvx512;
#elif defined(__aarch64__)
  return has_dot_products() ? CpuLevel::kNeonDot : CpuLevel::kNeon;
#else
  return CpuLevel::kPortable;
#endif
}

}  // namespace

CpuLevel detect_cpu_level() {
  static const CpuLevel level = detect();
  return level;
}

bool can_run(CpuLevel level) {
  const bool of_arm = level >= CpuLevel::kNeon;
#if defined(__aarch64__)
  return level == CpuLevel::kPortable || (of_arm && level <= detect_cpu_level());
#else
  return !of_arm && level <= detect_cpu_level();
#endif
}

std::vector<CpuLevel> cpu_levels() {
  std::vector<CpuLevel> out;
  for (const CpuLevel level : kAll) {
    if (can_run(level)) out.push_back(level);
  }
#if defined(__aarch64__)
  out.erase(out.begin());  // portable: the same kernels as NEON's
#endif
  return out;
}

const char* name(CpuLevel level) {
  switch (level) {
    case CpuLevel::kAmx:
      return "amx";
    case CpuLevel::kAvx512:
      return "avx512";
    case CpuLevel::kAvx2:
      return "avx2";
    case CpuLevel::kNeon:
      return "neon";
    case CpuLevel::kNeonDot:
      return "neon_dot";
    case CpuLevel::kPortable:
      break;
  }
  return "portable";
}

std::optional<CpuLevel> cpu_level_named(std::string_view wanted) {
  for (const CpuLevel level : kAll) {
    if (wanted == name(level)) return level;
  }
  return std::nullopt;
}

const KernelTable& kernels_of(CpuLevel level) {
  switch (level) {
    case CpuLevel::kAmx:
      return amx_kernels();
    case CpuLevel::kAvx512:
      return avx512_kernels();
    case CpuLevel::kAvx2:
      return avx2_kernels();
    case CpuLevel::kNeon:
      return neon_kernels();
    case CpuLevel::kNeonDot:
      return neon_dot_kernels();
    case CpuLevel::kPortable:
      break;
  }
  return portable_kernels();
}

}  // namespace tandem::kernels
