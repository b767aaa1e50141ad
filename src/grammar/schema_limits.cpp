#include "grammar/schema_limits.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "grammar/limit_errors.h"
#include "grammar/pattern_limits.h"

namespace tandem::grammar {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostPatterns = 256;
constexpr size_t kMostIntersected = 8;
constexpr size_t kMostNames = 4000;
// Of the 20,000 parts that the matcher follows in one place, a member that may be left out takes
// four, and an alternative seven.
constexpr size_t kMostOptional = 400;         // of one object
constexpr size_t kMostOptionalAtOnce = 3000;  // of all alternatives of one place
constexpr size_t kMostAlternatives = 1000;
constexpr size_t kMostAlternativesInAll = 4000;
constexpr size_t kMostLevels = 4000;
constexpr uint64_t kMostCount = 2147483647;  // of letters or parts, as counts of patterns have it
constexpr uint64_t kMostMultiple = 100'000;  // of which the compiler makes as many states

/// Their values are data, whatever they look like.
bool holds_data(std::string_view keyword) {
  static constexpr std::string_view kKeywords[] = {"enum", "const", "default", "examples"};
  return std::ranges::find(kKeywords, keyword) != std::end(kKeywords);
}

/// Their values hold schemas by name.
bool holds_names(std::string_view keyword) {
  static constexpr std::string_view kKeywords[] = {"properties", "patternProperties", "$defs",
                                                   "definitions", "dependentSchemas"};
  return std::ranges::find(kKeywords, keyword) != std::end(kKeywords);
}

/// Their values count letters, elements or members.
bool is_count(std::string_view keyword) {
  static constexpr std::string_view kKeywords[] = {"minLength", "maxLength",     "minItems",
                                                   "maxItems",  "minProperties", "maxProperties"};
  return std::ranges::find(kKeywords, keyword) != std::end(kKeywords);
}

/// As messages quote it.
std::string shown(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 40);
}

Error wrong(std::string message) { return {ErrorCode::kInvalid, std::move(message), "grammar"}; }

bool has_pattern(const Json& schema) {
  if (!schema.is_structured()) return false;
  if (schema.is_object() && schema.contains("pattern")) return true;
  return std::ranges::any_of(schema, has_pattern);
}

/// Intersections of patterns cost exponential time while they compile.
Status check_intersection(const Json& parts) {
  const auto count = static_cast<size_t>(std::ranges::count_if(parts, has_pattern));
  if (count > kMostIntersected) return over("patterns in an allOf", count, kMostIntersected);
  return {};
}

bool is_choice(std::string_view keyword) { return keyword == "anyOf" || keyword == "oneOf"; }

bool is_constant(const Json& schema) {
  return schema.is_object() && (schema.contains("const") || schema.contains("enum"));
}

const Json* member(const Json& schema, const char* name) {
  if (!schema.is_object()) return nullptr;
  const auto found = schema.find(name);
  return found == schema.end() ? nullptr : &*found;
}

std::set<std::string_view> strings_of(const Json* list) {
  std::set<std::string_view> out;
  if (list == nullptr || !list->is_array()) return out;
  for (const Json& each : *list) {
    if (each.is_string()) out.insert(each.get_ref<const std::string&>());
  }
  return out;
}

struct Names {
  size_t declared = 0;
  size_t required = 0;
  size_t both = 0;
};

Names names_of(const Json& schema) {
  const Json* properties = member(schema, "properties");
  const bool has_any = properties != nullptr && properties->is_object();
  const auto required = strings_of(member(schema, "required"));
  const auto both = std::ranges::count_if(
      required, [&](std::string_view name) { return has_any && properties->contains(name); });
  return {.declared = has_any ? properties->size() : 0,
          .required = required.size(),
          .both = static_cast<size_t>(both)};
}

bool is_schema(const Json& value) { return value.is_object() || value.is_boolean(); }

Error no_schema(std::string_view name, const Json& got) {
  return wrong(fmt::format("\"{}\" in the schema must be a schema, an object or a boolean, got {}",
                           name.substr(0, 80), shown(got)));
}

/// What llguidance takes for a count: 5, and not 5.0 or 5e3.
Status check_count(const std::string& keyword, const Json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() <= kMostCount) return {};
  return wrong(
      fmt::format("{} must be a whole number from 0 to {}, without a point or an "
                  "exponent, got {}",
                  keyword, kMostCount, shown(value)));
}

size_t optional_of(const Json& schema) {
  const Names names = names_of(schema);
  return names.declared - names.both;
}

/// The schema that "#…" names, inside the document.
const Json* target_of(const Json& root, const std::string& path) {
  if (!path.starts_with('#')) return nullptr;
  try {
    const Json::json_pointer pointer(path.substr(1));
    return root.contains(pointer) ? &root.at(pointer) : nullptr;
  } catch (const Json::exception&) {
    return nullptr;  // the compiler says so
  }
}

/// The number's digits without its point, 0.25 as 25; larger than any bound where it is.
uint64_t digits_of(const Json& number) {
  const std::string text = number.dump();
  uint64_t digits = 0;
  for (const char c : text) {
    if (c == 'e') return text.find("e-") == std::string::npos ? UINT64_MAX : digits;
    if (c >= '0' && c <= '9') digits = digits * 10 + static_cast<uint64_t>(c - '0');
    if (digits > kMostMultiple) return UINT64_MAX;
  }
  if (text.ends_with(".0")) digits /= 10;
  return std::max<uint64_t>(digits, 1);
}

}  // namespace

Status SchemaLimits::take(const Json& root) {
  heights_.clear();
  optional_.clear();
  references_.clear();
  levels_ += height_of(root);
  if (Status fits = check(root, root); !fits) return fits;
  return check_references(root);
}

size_t SchemaLimits::height_of(const Json& value) {
  size_t height = 0;
  if (value.is_structured()) {
    for (const Json& inner : value) {
      if (inner.is_structured()) height = std::max(height, height_of(inner));
    }
  }
  return heights_[&value] = height + 1;
}

/// Requires bounded depth.
Status SchemaLimits::check(const Json& root, const Json& schema) {
  if (schema.is_array()) {
    for (const Json& each : schema) {
      if (Status fits = check(root, each); !fits) return fits;
    }
  }
  if (!schema.is_object()) return {};
  if (Status fits = check_names(schema); !fits) return fits;
  for (const auto& [name, value] : schema.items()) {
    if (holds_data(name)) continue;
    if (Status fits = check_member(root, name, value); !fits) return fits;
    if (!holds_names(name) || !value.is_object()) {
      if (Status fits = check(root, value); !fits) return fits;
      continue;
    }
    for (const auto& [inner_name, inner] : value.items()) {
      if (name.ends_with("roperties") && !is_schema(inner)) return no_schema(inner_name, inner);
      if (Status fits = check(root, inner); !fits) return fits;
    }
  }
  return {};
}

Status SchemaLimits::check_member(const Json& root, const std::string& name, const Json& value) {
  if (name == "$ref" && value.is_string()) references_.insert(value.get<std::string>());
  if (name == "allOf" && value.is_array()) return check_intersection(value);
  if (is_choice(name) && value.is_array()) return check_alternatives(root, value);
  if (is_count(name)) return check_count(name, value);
  if (name == "items" && !value.is_array() && !is_schema(value)) return no_schema(name, value);
  if (name == "additionalProperties" && !is_schema(value)) return no_schema(name, value);
  if (name == "patternProperties" && value.is_object()) return check_patterns(value);
  if (name == "pattern" && value.is_string()) return count_pattern(value.get<std::string>());
  if (name == "multipleOf" && !(value.is_number() && value.get<double>() > 0)) {
    return wrong(fmt::format("multipleOf must be a number above 0, got {}", shown(value)));
  }
  if (name == "multipleOf") return count_multiple(value);
  return {};
}

Status SchemaLimits::check_names(const Json& schema) {
  const Names names = names_of(schema);
  names_ += names.declared + names.required - names.both;
  if (names_ > kMostNames) return over("properties", names_, kMostNames);
  const size_t optional = names.declared - names.both;
  if (optional <= kMostOptional) return {};
  return over("properties in one object that are not required", optional, kMostOptional);
}

Status SchemaLimits::check_alternatives(const Json& root, const Json& list) {
  const auto constants = static_cast<size_t>(std::ranges::count_if(list, is_constant));
  const size_t others = list.size() - constants;
  if (others > kMostAlternatives)
    return over("alternatives in one anyOf or oneOf", others, kMostAlternatives);
  size_t optional = 0;
  for (const Json& each : list) optional += optional_at(root, each, 0);
  if (optional > kMostOptionalAtOnce) {
    return over("properties that are not required in all alternatives of one place", optional,
                kMostOptionalAtOnce);
  }
  alternatives_ += list.size();
  if (alternatives_ <= kMostAlternativesInAll) return {};
  return over("alternatives in anyOf and oneOf (one enum may have more)", alternatives_,
              kMostAlternativesInAll);
}

/// Through references and alternatives of alternatives, as deep as brackets may go.
size_t SchemaLimits::optional_at(const Json& root, const Json& schema, size_t depth) {
  if (!schema.is_object() || depth > kMostDepth) return 0;
  const auto [known, is_new] = optional_.try_emplace(&schema, 0);  // 0 where it leads back
  if (!is_new) return known->second;
  size_t count = optional_of(schema);
  for (const char* keyword : {"anyOf", "oneOf", "allOf"}) {
    const Json* list = member(schema, keyword);
    if (list == nullptr || !list->is_array()) continue;
    for (const Json& each : *list) count += optional_at(root, each, depth + 1);
  }
  const Json* path = member(schema, "$ref");
  const Json* target = path != nullptr && path->is_string()
                           ? target_of(root, path->get_ref<const std::string&>())
                           : nullptr;
  if (target != nullptr) count += optional_at(root, *target, depth + 1);
  return optional_[&schema] = count;
}

/// All together, since an allOf makes one number of its own: their least common multiple.
Status SchemaLimits::count_multiple(const Json& multiple) {
  const uint64_t one = digits_of(multiple);
  multiples_ = one > kMostMultiple ? one : std::lcm(multiples_, one);
  if (multiples_ <= kMostMultiple) return {};
  return wrong(
      fmt::format("the schema's multipleOf values have a common multiple (without their points) "
                  "above {}: take smaller or rounder ones, or none",
                  kMostMultiple));
}

Status SchemaLimits::count_pattern(const std::string& pattern) {
  if (++patterns_ > kMostPatterns) return over("patterns", patterns_, kMostPatterns);
  return check_pattern(pattern);
}

Status SchemaLimits::check_patterns(const Json& properties) {
  for (const auto& [pattern, inner] : properties.items()) {
    if (Status fits = count_pattern(pattern); !fits) return fits;
  }
  return {};
}

/// Whether references alone, of which nothing but they says what fits, lead in a circle.
Status SchemaLimits::check_reference(const Json& root, const std::string& path) {
  std::unordered_set<const Json*> seen;
  for (const Json* at = target_of(root, path); at != nullptr;) {
    if (!seen.insert(at).second) {
      return wrong(
          fmt::format("the schema's $ref \"{}\" leads back to itself, so that nothing says "
                      "what fits: let it lead to a schema with a type",
                      path.substr(0, 80)));
    }
    const Json* next = member(*at, "$ref");
    at = next != nullptr && next->is_string() ? target_of(root, next->get<std::string>()) : nullptr;
  }
  return {};
}

/// The compiler goes through each of them once, perhaps each inside another.
Status SchemaLimits::check_references(const Json& root) {
  for (const std::string& path : references_) {
    if (Status fits = check_reference(root, path); !fits) return fits;
    const Json* target = target_of(root, path);
    if (target != nullptr && target != &root) levels_ += std::max<size_t>(heights_[target], 1);
    if (levels_ > kMostLevels) return over("levels, references followed", levels_, kMostLevels);
  }
  return {};
}

Status check_brackets(std::string_view json) {
  size_t depth = 0;
  bool is_quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted && c == '\\') ++i;
    if (is_quoted) continue;
    if ((c == '{' || c == '[') && ++depth > kMostDepth) return too_deep(depth);
    if (c == '}' || c == ']') depth -= depth > 0;
  }
  return {};
}

}  // namespace tandem::grammar
