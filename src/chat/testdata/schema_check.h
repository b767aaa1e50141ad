// Whether JSON fits a schema, for the keywords that tests use: apart from what makes grammars.
#pragma once

#include <algorithm>
#include <cmath>
#include <regex>
#include <string>

#include "dialect/tools.h"

namespace tandem::chat {

class SchemaCheck {
 public:
  explicit SchemaCheck(nlohmann::json root) : root_(std::move(root)) {}

  bool fits(const nlohmann::json& value) const { return fits(value, root_); }

 private:
  using Value = nlohmann::json;

  static bool is_integer(const Value& value) {
    return value.is_number_integer() ||
           (value.is_number() && std::trunc(value.get<double>()) == value.get<double>());
  }

  static bool is_of(const Value& value, const std::string& type) {
    if (type == "integer") return is_integer(value);
    if (type == "number") return value.is_number();
    return type == value.type_name();
  }

  bool fits_type(const Value& value, const Value& type) const {
    if (type.is_string()) return is_of(value, type);
    return std::ranges::any_of(type, [&](const Value& each) { return is_of(value, each); });
  }

  long count(const Value& value, const Value& schemas) const {
    return std::ranges::count_if(schemas, [&](const Value& each) { return fits(value, each); });
  }

  static bool is_formatted(const std::string& text, const std::string& format) {
    const std::string pattern = format == "date" ? R"(\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]))"
                                : format == "time" ? R"(\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d))"
                                : format == "uuid"
                                    ? R"([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"
                                : format == "ipv4"  ? R"((\d{1,3}\.){3}\d{1,3})"
                                : format == "uri"   ? R"([A-Za-z][A-Za-z0-9+.-]*:[^\s<>"{}|\\^`]*)"
                                : format == "email" ? R"([^\s@]+@[A-Za-z0-9.-]+)"
                                                    : R"([\s\S]*)";
    return std::regex_match(text, std::regex(pattern));
  }

  static bool fits_string(const std::string& text, const std::string& name, const Value& bound) {
    const auto length = std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
    if (name == "minLength") return length >= bound;
    if (name == "maxLength") return length <= bound;
    if (name == "pattern") return std::regex_search(text, std::regex(bound.get<std::string>()));
    return name != "format" || is_formatted(text, bound);
  }

  static bool fits_number(double number, const std::string& name, const Value& bound) {
    if (name == "minimum") return number >= bound;
    if (name == "maximum") return number <= bound;
    if (name == "exclusiveMinimum") return number > bound;
    if (name == "exclusiveMaximum") return number < bound;
    return name != "multipleOf" ||
           std::abs(std::remainder(number, bound.get<double>())) < 1e-9 * std::abs(number) + 1e-9;
  }

  static bool fits_array(const Value& list, const std::string& name, const Value& bound) {
    if (name == "minItems") return list.size() >= bound;
    if (name == "maxItems") return list.size() <= bound;
    return true;
  }

  bool fits_elements(const Value& list, const Value& schema) const {
    const Value prefix = schema.value("prefixItems", Value::array());
    for (size_t i = 0; i < list.size(); ++i) {
      if (!fits(list[i], i < prefix.size() ? prefix[i] : schema.value("items", Value(true)))) {
        return false;
      }
    }
    return true;
  }

  bool fits_members(const Value& object, const Value& schema) const {
    const Value named = schema.value("properties", Value::object());
    const Value patterns = schema.value("patternProperties", Value::object());
    for (const auto& [name, value] : object.items()) {
      bool is_additional = !named.contains(name);
      if (!is_additional && !fits(value, named[name])) return false;
      for (const auto& [pattern, inner] : patterns.items()) {
        if (!std::regex_search(name, std::regex(pattern))) continue;
        is_additional = false;
        if (!fits(value, inner)) return false;
      }
      if (is_additional && !fits(value, schema.value("additionalProperties", Value(true)))) {
        return false;
      }
    }
    const Value required = schema.value("required", Value::array());
    return object.size() >= schema.value("minProperties", size_t{0}) &&
           object.size() <= schema.value("maxProperties", SIZE_MAX) &&
           std::ranges::all_of(required, [&](const Value& name) {
             return object.contains(name.get<std::string>());
           });
  }

  bool fits(const Value& value, const Value& schema) const {
    if (schema.is_boolean()) return schema;
    for (const auto& [name, bound] : schema.items()) {
      if (name == "$ref" &&
          !fits(value, root_.at(Value::json_pointer(bound.get<std::string>().substr(1))))) {
        return false;
      }
      if (name == "type" && !fits_type(value, bound)) return false;
      if (name == "const" && value != bound) return false;
      if (name == "enum" && std::ranges::find(bound, value) == bound.end()) return false;
      if (name == "anyOf" && count(value, bound) == 0) return false;
      if (name == "oneOf" && count(value, bound) != 1) return false;
      if (name == "allOf" && count(value, bound) != static_cast<long>(bound.size())) return false;
      if (value.is_string() && !fits_string(value, name, bound)) return false;
      if (value.is_number() && !fits_number(value, name, bound)) return false;
      if (value.is_array() && !fits_array(value, name, bound)) return false;
    }
    if (value.is_array() && !fits_elements(value, schema)) return false;
    return !value.is_object() || fits_members(value, schema);
  }

  Value root_;
};

}  // namespace tandem::chat
