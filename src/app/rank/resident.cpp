#include "app/rank/resident.h"

#include <unistd.h>

#ifdef __APPLE__
#include <mach/mach.h>
#else
#include <fstream>
#endif

namespace tandem::app {

#ifdef __APPLE__

uint64_t resident_bytes() {
  mach_task_basic_info info{};
  mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
  const kern_return_t got = task_info(mach_task_self(), MACH_TASK_BASIC_INFO,
                                      reinterpret_cast<task_info_t>(&info), &count);
  return got == KERN_SUCCESS ? info.resident_size : 0;
}

#else

uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");  // in pages: size, resident, …
  uint64_t size = 0;
  uint64_t resident = 0;
  if (!(statm >> size >> resident)) return 0;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

#endif

}  // namespace tandem::app
