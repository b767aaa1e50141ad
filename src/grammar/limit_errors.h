// What a grammar's bounds say when it is over them.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string_view>

#include "base/error.h"

namespace tandem::grammar {

/// "the grammar has GOT WHAT, at most MOST are taken: …".
inline Error over(std::string_view what, size_t got, size_t most) {
  return {
      ErrorCode::kInvalid,
      fmt::format("the grammar has {} {}, at most {} are taken: make it smaller", got, what, most),
      "grammar"};
}

inline constexpr size_t kMostDepth = 100;

inline Error too_deep(size_t depth) { return over("levels of brackets", depth, kMostDepth); }

}  // namespace tandem::grammar
