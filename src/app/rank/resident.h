// Memory of this process, as the system counts it.
#pragma once

#include <cstdint>

namespace tandem::app {

/// Bytes that lie in memory now, files mapped into it included; 0 when the system does not say.
uint64_t resident_bytes();

}  // namespace tandem::app
