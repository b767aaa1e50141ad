// Sums over ranks: float32, in rank order, rounded once.
#pragma once

#include <cstddef>
#include <span>

#include "comm/transport.h"

namespace tandem::comm {

size_t size_of(Dtype dtype);

/// out[i] = parts[0][i] + parts[1][i] + …, added in this order in float32 and rounded once to the
/// type (to nearest, ties to even). `out` may be one of the parts. No alignment is needed beyond
/// the element's.
void ordered_sum(std::span<const std::byte* const> parts,
                 size_t count,
                 Dtype dtype,
                 std::byte* out);

}  // namespace tandem::comm
