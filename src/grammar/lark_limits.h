// Bounds on grammars in Lark, before they are compiled.
#pragma once

#include <string_view>

#include "base/result.h"

namespace tandem::grammar {

/// Definitions, alternatives, what terminals become when those that they are made of are put into
/// them, and all of SchemaLimits over the schemas behind %json. Errors: kInvalid. Requires bounded
/// depth of brackets; what is wrong in other ways the compiler says.
Status check_lark(std::string_view source);

}  // namespace tandem::grammar
