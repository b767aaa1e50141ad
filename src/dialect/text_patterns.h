// What a schema says of strings, as terminals of Lark: for text that stands without quotes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "dialect/schema_ways.h"

namespace tandem::dialect {

/// Text of any length, line breaks included.
inline constexpr const char* kAnyText = "/(?s:.*)/";

/// Text in which a part matches the pattern, as JSON Schema has it; ^ and $ may only begin and end
/// the pattern or alternatives of it. Nothing where they stand elsewhere.
std::optional<std::string> search_expression(std::string_view pattern);

/// The strings of a way that lists none; kAnyText when it binds none. `unbound` becomes the keyword
/// that cannot be held to, if there is one.
std::string string_expression(const Way& way, std::string& unbound);

/// Text that is read as a value of one of these kinds where a string may stand, or could be.
std::string misread_expression(Kinds kinds);

/// A count among the keywords, such as minItems.
uint64_t count_in(const Json& keywords, const char* name, uint64_t missing);

/// Values of the kinds null, boolean and number as they are written.
std::string scalar_expression(Kinds kinds);

}  // namespace tandem::dialect
