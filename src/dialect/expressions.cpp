// Expressions of Lark for text of a form.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dialect/grammar.h"
#include "dialect/json_text.h"

namespace tandem::dialect {
namespace {

/// Formats of strings that llguidance enforces; others say nothing about what is valid.
constexpr std::array<std::string_view, 10> kFormats = {
    "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"};

constexpr const char* kSpace = "( |\\n[ \\t]{0,40})";

/// \d and \w are of ASCII, as in ECMA 262; the compiler would take them for those of Unicode.
std::string with_ascii_classes(std::string_view pattern) {
  std::string out;
  bool is_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const char next = c == '\\' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'd' || next == 'w') {
      const std::string_view members = next == 'd' ? "0-9" : "A-Za-z0-9_";
      out += is_class ? std::string(members) : fmt::format("[{}]", members);
      ++i;
      continue;
    }
    out += c;
    if (next != '\0') out += pattern[++i];
    if (c == '[') is_class = true;
    if (c == ']') is_class = false;
  }
  return out;
}

void adapt_to_compiler(Json& schema) {
  if (schema.is_object() && schema.contains("format") && schema["format"].is_string()) {
    const auto& format = schema["format"].get_ref<const std::string&>();
    if (std::ranges::find(kFormats, format) == kFormats.end()) schema.erase("format");
  }
  if (schema.is_object() && schema.contains("pattern") && schema["pattern"].is_string()) {
    schema["pattern"] = with_ascii_classes(schema["pattern"].get_ref<const std::string&>());
  }
  if (!schema.is_structured()) return;
  for (auto& [name, inner] : schema.items()) {
    if (schema.is_object() && (name == "enum" || name == "const")) continue;  // values
    adapt_to_compiler(inner);
  }
}

constexpr const char* kDocument = "#/$defs/document";

bool is_reference(std::string_view name, const Json& value) {
  return name == "$ref" && value.is_string() &&
         value.get_ref<const std::string&>().starts_with('#');
}

bool is_data(std::string_view name) { return name == "enum" || name == "const"; }

bool has_references(const Json& schema) {
  if (schema.is_array()) return std::ranges::any_of(schema, has_references);
  if (!schema.is_object()) return false;
  return std::ranges::any_of(schema.items(), [](const auto& at) {
    return !is_data(at.key()) && (is_reference(at.key(), at.value()) || has_references(at.value()));
  });
}

}  // namespace

void move_references(Json& schema, const std::string& place) {
  if (!schema.is_structured()) return;
  for (auto& [name, inner] : schema.items()) {
    if (schema.is_object() && is_data(name)) continue;
    if (schema.is_object() && is_reference(name, inner)) {
      inner = place + inner.get<std::string>().substr(1);
    } else {
      move_references(inner, place);
    }
  }
}

Json standing_alone(const Json& schema, const Json* document) {
  if (document == nullptr || document == &schema || !has_references(schema)) return schema;
  Json alone = schema;
  Json all = *document;
  move_references(alone, kDocument);
  move_references(all, kDocument);
  alone["$defs"] = {{"document", std::move(all)}};
  return alone;
}

std::string json_expression(const Json& schema) {
  Json bounded = schema;
  if (bounded.is_object()) {
    adapt_to_compiler(bounded);
    bounded["x-guidance"] = {{"whitespace_pattern", kSpace}};
  }
  return "%json " + bounded.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string regex_expression(std::string_view given) {
  const std::string pattern = with_ascii_classes(given);
  std::string out = "/";
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      out += c;
      out += pattern[++i];
    } else if (c == '/') {
      out += "\\/";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else {
      out += c;
    }
  }
  return out + "/";
}

std::string choice_expression(const std::vector<std::string>& choices) {
  std::string any;
  for (const std::string& choice : choices) {
    any += (any.empty() ? "" : " | ") + json_string(choice);
  }
  return "(" + any + ")";
}

}  // namespace tandem::dialect
