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
constexpr size_t kMostOptional = 400;  // of one object: each takes four of llguidance's 2000 items
constexpr size_t kMostAlternatives = 1000;
constexpr size_t kMostAlternativesInAll = 4000;
constexpr size_t kMostLevels = 4000;
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
  references_.clear();
  levels_ += height_of(root);
  if (Status fits = check(root); !fits) return fits;
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
Status SchemaLimits::check(const Json& schema) {
  if (schema.is_array()) {
    for (const Json& each : schema) {
      if (Status fits = check(each); !fits) return fits;
    }
  }
  if (!schema.is_object()) return {};
  if (Status fits = check_names(schema); !fits) return fits;
  for (const auto& [name, value] : schema.items()) {
    if (holds_data(name)) continue;
    if (Status fits = check_member(name, value); !fits) return fits;
    if (!holds_names(name) || !value.is_object()) {
      if (Status fits = check(value); !fits) return fits;
      continue;
    }
    for (const Json& inner : value) {
      if (Status fits = check(inner); !fits) return fits;
    }
  }
  return {};
}

Status SchemaLimits::check_member(const std::string& name, const Json& value) {
  if (name == "$ref" && value.is_string()) references_.insert(value.get<std::string>());
  if (name == "allOf" && value.is_array()) return check_intersection(value);
  if ((name == "anyOf" || name == "oneOf") && value.is_array()) return check_alternatives(value);
  if (name == "patternProperties" && value.is_object()) return check_patterns(value);
  if (name == "pattern" && value.is_string()) return count_pattern(value.get<std::string>());
  if (name == "multipleOf" && !(value.is_number() && value.get<double>() > 0)) {
    return wrong(
        fmt::format("multipleOf must be a number above 0, got {}",
                    value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 40)));
  }
  if (name == "multipleOf") return count_multiple(value);
  return {};
}

Status SchemaLimits::check_names(const Json& schema) {
  const Json* properties = member(schema, "properties");
  const bool has_any = properties != nullptr && properties->is_object();
  const auto required = strings_of(member(schema, "required"));
  const size_t declared = has_any ? properties->size() : 0;
  const auto both = static_cast<size_t>(std::ranges::count_if(
      required, [&](std::string_view name) { return has_any && properties->contains(name); }));
  names_ += declared + required.size() - both;
  if (names_ > kMostNames) return over("properties", names_, kMostNames);
  if (declared - both <= kMostOptional) return {};
  return over("properties in one object that are not required", declared - both, kMostOptional);
}

Status SchemaLimits::check_alternatives(const Json& list) {
  const auto constants = static_cast<size_t>(std::ranges::count_if(list, is_constant));
  const size_t others = list.size() - constants;
  if (others > kMostAlternatives)
    return over("alternatives in one anyOf or oneOf", others, kMostAlternatives);
  alternatives_ += list.size();
  if (alternatives_ <= kMostAlternativesInAll) return {};
  return over("alternatives in anyOf and oneOf (one enum may have more)", alternatives_,
              kMostAlternativesInAll);
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
