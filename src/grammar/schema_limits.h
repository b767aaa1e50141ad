// Bounds on JSON schemas, before they are compiled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/result.h"

namespace tandem::grammar {

/// Counts over one or several schemas, all of one grammar. The compiler's time grows with the
/// square of an object's optional members and of alternatives, and its stack with the levels that
/// references lead through.
class SchemaLimits {
 public:
  /// Adds a schema, whose depth is bounded. Errors: kInvalid, with what is over its bound, a
  /// reference that leads back to itself, or a value that its keyword cannot have.
  Status take(const nlohmann::json& root);

 private:
  using Json = nlohmann::json;

  Status check(const Json& root, const Json& schema);
  Status check_member(const Json& root, const std::string& name, const Json& value);
  Status check_names(const Json& schema);
  Status check_alternatives(const Json& root, const Json& list);
  Status check_patterns(const Json& properties);
  Status check_reference(const Json& root, const std::string& path);
  Status check_references(const Json& root);
  Status count_pattern(const std::string& pattern);
  Status count_multiple(const Json& multiple);
  size_t height_of(const Json& value);
  size_t optional_at(const Json& root, const Json& schema, size_t depth);

  size_t patterns_ = 0;
  size_t names_ = 0;
  size_t alternatives_ = 0;
  uint64_t multiples_ = 1;
  size_t levels_ = 0;  // of all that references lead to
  // Of the schema that is being added:
  std::unordered_map<const Json*, size_t> heights_;
  std::unordered_map<const Json*, size_t> optional_;  // members that may begin there
  std::unordered_set<std::string> references_;
};

/// Whether JSON's brackets, outside of strings, go at most as deep as schemas may. Error: kInvalid.
Status check_brackets(std::string_view json);

}  // namespace tandem::grammar
