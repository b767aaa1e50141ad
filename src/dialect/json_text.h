// JSON as text: what models and clients write, one value on one line.
#pragma once

#include <string>
#include <string_view>

#include "dialect/tools.h"

namespace tandem::dialect {

/// Appends a character of a JSON string's content, escaped where it must be.
void append_escaped(std::string& text, char byte);

/// The text as a JSON string.
std::string json_string(std::string_view text);

/// With ", " and ": ", as Python's json.dumps and most models space it.
std::string spaced_json(const Json& value);

/// A number as JSON spells it: no leading zeros, digits on both sides of the point.
bool is_json_number(std::string_view text);
bool is_json_integer(std::string_view text);

/// Whether a double holds a number of JSON, however exactly. Others are refused by many readers.
bool is_in_range(std::string_view number);

/// A number of JSON as it is written; one that no double holds as the one that is farthest from 0.
std::string json_number(std::string_view number);

std::string_view trimmed(std::string_view text);

}  // namespace tandem::dialect
