#include "kernels/cores.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace tandem::kernels {

#if defined(__linux__)

std::vector<uint32_t> usable_core_list() {
  std::vector<uint32_t> list;
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return list;
  for (uint32_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &cores)) list.push_back(core);
  return list;
}

bool stay_on_core(uint32_t core) {
  if (core >= CPU_SETSIZE) return false;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  return sched_setaffinity(0, sizeof cores, &cores) == 0;
}

#else

std::vector<uint32_t> usable_core_list() { return {}; }

bool stay_on_core(uint32_t) { return false; }

#endif

}  // namespace tandem::kernels
