// Time that means the same in another process.
#pragma once

#include <chrono>
#include <cstdint>

namespace tandem {

/// Microseconds of Unix time, now. Any thread.
inline int64_t unix_microseconds() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace tandem
