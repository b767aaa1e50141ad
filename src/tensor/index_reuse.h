// Which position's choice of key blocks a generated token attends by.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tandem::tensor {

/// As plan::IndexReuse, which says the rule.
struct IndexReuse {
  uint32_t most_age = 0;
  uint32_t from = 0;

  /// The position whose choice one takes: its own where it chooses. Requires position >= from.
  uint32_t chooser(uint32_t position, uint32_t block) const {
    const uint32_t first = std::max(from, position / block * block);
    return position - (position - first) % (most_age + 1);
  }
};

}  // namespace tandem::tensor
