// What goes wrong inside the matcher, in words that say what to do.
#pragma once

#include <string_view>

#include "base/error.h"

namespace tandem::grammar {

/// From llguidance's words. kInvalid when no text fits, kTooLarge when the grammar is over a bound
/// of its work, kInvalid with those words otherwise.
Error matcher_error(std::string_view why);

}  // namespace tandem::grammar
