// The cores that this process may use.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem::kernels {

/// Their numbers, ascending. Empty where the system does not tell.
std::vector<uint32_t> usable_core_list();

/// Keeps the calling thread on a core; false where the system does not let it.
bool stay_on_core(uint32_t core);

}  // namespace tandem::kernels
