// Calls with a number of rows that is known to the compiler.
#pragma once

#include <cstddef>
#include <type_traits>

namespace tandem::kernels {

/// Calls f with the count as an integral constant: 1 <= count <= kMost.
template <int kMost, class F>
[[gnu::always_inline]] inline void with_count(size_t count, F f) {
  if constexpr (kMost == 1) {
    f(std::integral_constant<int, 1>());
  } else if (count == kMost) {
    f(std::integral_constant<int, kMost>());
  } else {
    with_count<kMost - 1>(count, f);
  }
}

}  // namespace tandem::kernels
