// Bounds on grammars in Lark, before they are compiled.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"

namespace tandem::grammar {

/// Definitions, alternatives, what terminals become when those that they are made of are put into
/// them, and all of SchemaLimits over the schemas behind %json. Errors: kInvalid. Requires bounded
/// depth of brackets; what is wrong in other ways the compiler says.
Status check_lark(std::string_view source);

/// The tokens that a grammar names, as <|end|> or <[17]>, in their angle brackets; of one that
/// check_lark() refuses, perhaps not all. They live as long as the source.
std::vector<std::string_view> tokens_in_lark(std::string_view source);

}  // namespace tandem::grammar
