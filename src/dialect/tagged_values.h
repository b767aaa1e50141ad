// Reads values that stand between tags as bare text, such as <parameter=k>value</parameter>.
#pragma once

#include <string>
#include <vector>

#include "dialect/input.h"
#include "dialect/tools.h"
#include "dialect/typing.h"

namespace tandem::dialect {

struct TaggedValueStyle {
  std::string close = {};                   // ends a value …
  std::vector<std::string> followers = {};  // … if one of these comes next, after white space
  std::string close_all = {};  // ends it as well, when `block_end` or the answer's end follows
  std::string block_end = {};
  bool has_line_breaks = false;  // one around the value, not part of it
  bool has_cdata = false;        // <![CDATA[…]]> around values is not part of them
  Untyped untyped = Untyped::kText;
};

/// Reads up to `close` and past it (`close_all` stays), and appends the value to `out` as JSON. A
/// value that can only be a string is appended as it comes. The schema, which may be nowhere, tells
/// where text of several kinds can only be a string. False when the answer ended before.
///
/// A close tag inside a value (a file about this very syntax) is told from the real one by what
/// follows it.
Task<bool> read_tagged_value(
    Input& in, const TaggedValueStyle& style, Kinds kinds, Schema schema, std::string& out);

}  // namespace tandem::dialect
