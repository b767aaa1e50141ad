// Work on tokens in rounds of bounded memory, on the plain path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tensor/cpu_op.h"

namespace tandem::tensor {

/// What a round holds at most, but for one token that takes more.
inline constexpr int64_t kRoundNumbers = int64_t{32} << 20;

/// Joins part(begin, end) of tokens [0, tokens) along the first axis: as many tokens a part as
/// take kRoundNumbers, each `numbers` of them, but at least one.
template <class F>
array in_rounds(int tokens, int64_t numbers, const F& part) {
  const int most = static_cast<int>(std::clamp<int64_t>(kRoundNumbers / numbers, 1, tokens));
  std::vector<array> parts;
  for (int at = 0; at < tokens; at += most) parts.push_back(part(at, std::min(at + most, tokens)));
  return parts.size() == 1 ? parts[0] : mx::concatenate(parts, 0);
}

}  // namespace tandem::tensor
