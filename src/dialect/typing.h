// Values that a model wrote as bare text, typed by the tool's schema.
#pragma once

#include <string>
#include <string_view>

#include "dialect/tools.h"

namespace tandem::dialect {

/// What a value of unknown type is taken for.
enum class Untyped : uint8_t {
  kText,  // a string, but for "null"
  kJson,  // what it is as JSON or as a Python literal, else a string
};

/// The value as JSON text. Nothing is lost: a value that does not fit its types exactly stays a
/// string ("007" and "4.5" for an integer, "[1, 2" for an array). Where several types are allowed,
/// the most special one that fits is taken.
std::string typed(std::string_view text, Kinds kinds, Untyped untyped);

/// The same where the kinds are those of a schema: text that the schema allows only as a string is
/// one, such as "3" where it has "3" or numbers above 5.
std::string typed_by(Schema schema, std::string_view text, Kinds kinds, Untyped untyped);

}  // namespace tandem::dialect
