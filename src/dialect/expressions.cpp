// Expressions of Lark for text of a form.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

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

/// Their members are schemas by name, whatever these are called.
bool holds_names(std::string_view name) {
  static constexpr std::string_view kKeywords[] = {"properties", "patternProperties", "$defs",
                                                   "definitions", "dependentSchemas"};
  return std::ranges::find(kKeywords, name) != std::end(kKeywords);
}

/// Each reference of a schema. `are_names`: it is the value of such a keyword.
template <typename Value>
void for_each_reference(Value& schema,
                        const std::function<void(Value& reference)>& visit,
                        bool are_names = false) {
  if (!schema.is_structured()) return;
  for (auto& [name, inner] : schema.items()) {
    const bool is_keyword = schema.is_object() && !are_names;
    if (is_keyword && is_data(name)) continue;
    if (is_keyword && is_reference(name, inner)) {
      visit(inner);
    } else {
      for_each_reference(inner, visit, is_keyword && holds_names(name));
    }
  }
}

std::vector<std::string> references_of(const Json& schema) {
  std::vector<std::string> out;
  for_each_reference<const Json>(
      schema, [&](const Json& reference) { out.push_back(reference.template get<std::string>()); });
  return out;
}

/// Of the document what these references lead to, and what that refers to: the definitions that
/// they name; all of it where they lead elsewhere.
Json reached(const Json& document, std::vector<std::string> references) {
  Json out = Json::object();
  while (!references.empty()) {
    const std::string path = std::move(references.back());
    references.pop_back();
    const size_t name_at = path.find('/', 2);
    const std::string list = path.substr(0, name_at);
    if (name_at == std::string::npos || (list != "#/$defs" && list != "#/definitions")) {
      return document;
    }
    const std::string name = path.substr(name_at + 1, path.find('/', name_at + 1) - name_at - 1);
    if (name.find_first_of("~%") != std::string::npos) return document;
    const std::string key = list.substr(2);
    if (out.contains(key) && out[key].contains(name)) continue;
    if (!document.contains(key) || !document[key].contains(name)) return document;
    out[key][name] = document[key][name];
    for (std::string& inner : references_of(out[key][name])) {
      references.push_back(std::move(inner));
    }
  }
  return out;
}

}  // namespace

void move_references(Json& schema, const std::string& place) {
  for_each_reference<Json>(
      schema, [&](Json& reference) { reference = place + reference.get<std::string>().substr(1); });
}

Json standing_alone(const Json& schema, const Json* document) {
  if (document == nullptr || document == &schema) return schema;
  const std::vector<std::string> references = references_of(schema);
  if (references.empty()) return schema;
  Json alone = schema;
  Json all = reached(*document, references);
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
