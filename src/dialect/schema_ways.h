// The ways in which a value may fit a schema, taken apart for grammars that are not JSON.
#pragma once

#include <string>
#include <vector>

#include "dialect/tools.h"

namespace tandem::dialect {

inline constexpr Kinds kNumbers = kNumber | kInteger;
inline constexpr Kinds kAnyKind = 127;

/// One way: values of these kinds that fit all the keywords. No references and unions are left at
/// its top, `const` became `enum`, and of more than one `pattern` there is a list. Where there is
/// an `enum` it is the only keyword, and all its values fit. Numbers that need not be integers are
/// of both kinds.
struct Way {
  Kinds kinds = kAnyKind;
  Json keywords = Json::object();

  bool is_listed() const { return keywords.contains("enum"); }
};

struct Ways {
  std::vector<Way> list;
  std::string unbound = {};  // a keyword that these ways do not hold a value to; empty: none

  /// Of all ways.
  Kinds kinds() const;
  /// Whether every value of the kind fits.
  bool is_free(Kinds kind) const;
};

/// A schema that is nowhere allows everything. References lead into the schema's document, also
/// those inside of the keywords. Bounded in number and depth, beyond which `unbound` says so.
Ways ways_of(Schema schema);

/// Whether a value fits one of the ways, but for what it has inside and for patterns and formats.
bool may_fit(const Ways& ways, const Json& value);

/// Keywords of values of one kind: "minLength" of strings.
bool is_keyword_of(Kinds kinds, std::string_view keyword);

/// Every JSON type that the kinds have.
Json type_list(Kinds kinds);

}  // namespace tandem::dialect
