#include "comm/wait_word.h"

#include <thread>

#if defined(__linux__)
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#elif defined(__APPLE__)
#include <os/os_sync_wait_on_address.h>
#endif

namespace tandem::comm {

#if defined(__linux__)

void wait_word(std::atomic<uint32_t>& word, uint32_t seen, std::chrono::milliseconds longest) {
  const auto count = longest.count();
  timespec limit{.tv_sec = count / 1000, .tv_nsec = (count % 1000) * 1'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void wake_word(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

uint32_t usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) {
    return static_cast<uint32_t>(CPU_COUNT(&cores));
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

#elif defined(__APPLE__)

void wait_word(std::atomic<uint32_t>& word, uint32_t seen, std::chrono::milliseconds longest) {
  os_sync_wait_on_address_with_timeout(
      &word, seen, sizeof seen, OS_SYNC_WAIT_ON_ADDRESS_SHARED, OS_CLOCK_MACH_ABSOLUTE_TIME,
      static_cast<uint64_t>(std::chrono::nanoseconds(longest).count()) + 1);
}

void wake_word(std::atomic<uint32_t>& word) {
  os_sync_wake_by_address_all(&word, sizeof(uint32_t), OS_SYNC_WAKE_BY_ADDRESS_SHARED);
}

uint32_t usable_cores() { return std::max(1U, std::thread::hardware_concurrency()); }

#else
#error "sleeping on a shared word is not written for this system"
#endif

}  // namespace tandem::comm
