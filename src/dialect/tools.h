// The tools that a request declares, and what their schemas say about values.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::dialect {

using Json = nlohmann::ordered_json;

/// A set of JSON types; 0 when nothing is known.
using Kinds = uint8_t;
inline constexpr Kinds kNull = 1;
inline constexpr Kinds kBoolean = 2;
inline constexpr Kinds kInteger = 4;
inline constexpr Kinds kNumber = 8;
inline constexpr Kinds kString = 16;
inline constexpr Kinds kArray = 32;
inline constexpr Kinds kObject = 64;

/// The first of the types as a JSON schema calls it; empty when nothing is known.
const char* type_name(Kinds kinds);

/// A place in a JSON schema, which may be nowhere. Follows $ref inside its document, and unites
/// what anyOf, oneOf and allOf say. Valid as long as the document.
class Schema {
 public:
  Schema() = default;
  explicit Schema(const Json& document) : document_(&document), at_(&document) {}

  /// A schema that is no part of the document, but whose references lead into it. Both live on.
  Schema(const Json* document, const Json* at) : document_(document), at_(at) {}

  /// Types that a value may have, as `type`, `enum`, `const` and `nullable` say; 0: any.
  Kinds kinds() const;

  /// Of a member of an object, or of the elements of an array.
  Schema property(std::string_view name) const;
  Schema items() const;

  /// Where its $ref leads, or itself; nowhere where that leads out of the document or nowhere.
  Schema target() const;

  /// Types that its own `type` says; 0: it says none.
  Kinds own_type() const;

  /// The schemas of its anyOf, oneOf or allOf, in order.
  std::vector<Schema> parts_of(const char* keyword) const;

  /// Null when it is nowhere.
  const Json* json() const { return at_; }
  const Json* document() const { return document_; }

 private:
  std::vector<Schema> parts(int depth) const;

  const Json* document_ = nullptr;
  const Json* at_ = nullptr;
};

struct Tool {
  std::string name;
  Json parameters;      // its schema; null when it has none
  bool strict = false;  // arguments must fit the schema
  bool loose = false;   // they need not: the schema says only how values are written
};

/// Immutable; thread-safe.
class Tools {
 public:
  Tools() = default;

  /// As in requests: [{"type": "function", "function": {name, parameters}}], or the inner objects
  /// alone. Entries of other shapes are left out.
  explicit Tools(const Json& list);

  const std::vector<Tool>& list() const { return list_; }
  bool empty() const { return list_.empty(); }
  bool has(std::string_view name) const { return find(name) != nullptr; }

  /// The same tools; those that are not strict loose.
  Tools loosened() const;

  /// Nowhere when the tool or its schema is unknown.
  Schema parameters(std::string_view name) const;

 private:
  const Tool* find(std::string_view name) const;

  std::vector<Tool> list_;
};

}  // namespace tandem::dialect
