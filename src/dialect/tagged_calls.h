// Calls written as tags: one around a call, one around each argument's value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dialect/syntax.h"
#include "dialect/tagged_values.h"

namespace tandem::dialect {

struct TaggedCallMarkers {
  std::vector<std::string> starts = {};  // of a block; the call's own tag when there is no block
  std::string end = {};                  // of a block
  std::string call_open = {};            // begins the call's tag …
  std::string tag_end = ">";             // … and this ends it
  std::string call_close = {};
  std::string parameter_open = {};
  std::string parameter_close = {};
  std::string name_attribute = {};  // empty: <function=NAME>, <parameter=NAME>
  std::string key_attribute = {};
  std::string type_attribute =
      {};                      // says a value's type: "string", "number", … or "true": a string
  std::string json_open = {};  // a tag around all arguments as one JSON object
  std::string json_close = {};
  bool has_line_breaks = false;  // see TaggedValueStyle
  bool has_cdata = false;
  Untyped untyped = Untyped::kText;
};

/// Values are typed by the tool's schema, or by what their tag says.
class TaggedCalls final : public Syntax {
 public:
  explicit TaggedCalls(TaggedCallMarkers markers);

  std::vector<std::string> starts() const override { return markers_.starts; }
  std::vector<std::string> literals() const override;
  Task<Found> read(Scope scope) const override;

 private:
  enum class Ended : uint8_t { kWell, kCut, kBadly };

  Task<Found> read_call(Scope scope) const;
  Task<Ended> read_parameters(Scope scope, const std::string& tool, class CallBuilder& call) const;
  Task<bool> read_parameter(Scope scope, const std::string& tool, class CallBuilder& call) const;
  Task<Found> read_json(Scope scope, std::string name) const;
  bool is_block() const { return markers_.starts.front() != markers_.call_open; }

  TaggedCallMarkers markers_;
  TaggedValueStyle values_;
  std::vector<std::string> ends_;    // what ends a block
  std::vector<std::string> inside_;  // what may follow the call's tag
};

/// The value of an attribute in ` name="value"`, or all of `=value` when `name` is empty; without
/// quotes, and with &quot; and &amp; resolved. Empty when there is none.
std::string attribute(std::string_view tag, std::string_view name);

}  // namespace tandem::dialect
