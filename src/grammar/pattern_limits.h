// Bounds on regular expressions, before they are compiled.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace tandem::grammar {

inline constexpr size_t kMostPatternBytes = 4096;

/// Counts inside counts, multiplied, at most; of terminals also over those that they are made of.
inline constexpr double kMostRepeats = 20'000;

/// How often counted repetitions ({n}, {n,m}) repeat a part at most, nested ones multiplied.
double repeats_of(std::string_view pattern);

/// Error: kInvalid, a part of a pattern is repeated too often.
Error too_many_repeats();

/// Bytes and repetitions of a pattern, and that what it repeats is something. Error: kInvalid.
Status check_pattern(std::string_view pattern);

}  // namespace tandem::grammar
