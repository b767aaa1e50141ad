// How far two token sequences are the same.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "gen/request.h"

namespace tandem::gen {

/// How many tokens both begin with.
inline size_t common_tokens(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace tandem::gen
