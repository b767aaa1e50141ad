#include "grammar/source_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tandem::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostDepth = 100;
constexpr size_t kMostPatterns = 256;
constexpr size_t kMostIntersected = 8;
constexpr size_t kMostPatternBytes = 4096;
constexpr double kMostRepeats = 20'000;  // of a part of a pattern, counts inside counts multiplied

Error over(std::string_view what, size_t got, size_t most) {
  return {ErrorCode::kInvalid, fmt::format("the grammar has {} {}, more than {}", got, what, most),
          "grammar"};
}

/// The upper number of {n}, {n,} or {n,m} at the start of the text; 1 when it is none of these.
double count_of(std::string_view text) {
  const size_t end = text.substr(0, 24).find('}');
  if (end == std::string_view::npos) return 1;
  double numbers[2] = {0, 0};
  size_t at = 0;
  for (const char c : text.substr(1, end - 1)) {
    if (c == ',' && at == 0) {
      ++at;
    } else if (c >= '0' && c <= '9') {
      numbers[at] = numbers[at] * 10 + (c - '0');
    } else {
      return 1;
    }
  }
  return std::max({numbers[0], numbers[1], 1.0});
}

/// How often counted repetitions ({n,m}) repeat a part at most, nested ones multiplied.
class Repeats {
 public:
  double of(std::string_view pattern) {
    text_ = pattern;
    at_ = 0;
    return sequence(0);
  }

 private:
  // Up to the closing bracket of a group.
  double sequence(size_t depth) {
    double most = 1;
    double last = 1;  // of the part before a count
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ')' && depth > 0) break;
      if (c == '{') {
        last *= count_of(text_.substr(at_));
        ++at_;
      } else if (c == '(' && depth < kMostDepth) {
        ++at_;
        last = sequence(depth + 1);
        ++at_;
      } else {
        at_ += c == '\\' ? 2 : 1;
        if (c != '}' && c != ',' && !(c >= '0' && c <= '9')) last = 1;
      }
      most = std::max(most, last);
    }
    return most;
  }

  std::string_view text_;
  size_t at_ = 0;
};

Error too_many_repeats() {
  return {ErrorCode::kInvalid,
          fmt::format("the grammar repeats a part of a pattern more than {} times",
                      static_cast<int>(kMostRepeats)),
          "grammar"};
}

/// ECMA 262, by which JSON schemas write patterns, lets nothing repeat an anchor or a beginning;
/// the compiler would pass over it.
bool repeats_nothing(std::string_view pattern) {
  char before = '(';
  bool is_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const bool repeats = c == '*' || c == '+' || (c == '?' && (i == 0 || pattern[i - 1] != '('));
    if (!is_class && repeats && std::string_view("^$(|").find(before) != std::string_view::npos) {
      return true;
    }
    before = c;
    if (c == '\\') ++i, before = 'x';
    if (c == '[') is_class = true;
    if (c == ']') is_class = false;
  }
  return false;
}

Status check_pattern(std::string_view pattern) {
  if (repeats_nothing(pattern)) {
    return Error{ErrorCode::kInvalid, "a pattern of the grammar repeats nothing (such as ^+)",
                 "grammar"};
  }
  if (pattern.size() > kMostPatternBytes) {
    return over("bytes in a pattern", pattern.size(), kMostPatternBytes);
  }
  if (Repeats().of(pattern) > kMostRepeats) return too_many_repeats();
  return {};
}

/// Brackets outside of quotes.
Status check_depth(std::string_view source) {
  size_t depth = 0;
  bool is_quoted = false;
  for (size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    if (c == '\\') {
      ++i;
    } else if (c == '"') {
      is_quoted = !is_quoted;
    } else if (c == '\n') {
      is_quoted = false;
    } else if (!is_quoted && (c == '(' || c == '[' || c == '{')) {
      if (++depth > kMostDepth) return over("levels of brackets", depth, kMostDepth);
    } else if (!is_quoted && (c == ')' || c == ']' || c == '}')) {
      depth -= depth > 0;
    }
  }
  return {};
}

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

Status check_patterns_of(const Json& properties, size_t& patterns) {
  for (const auto& [pattern, inner] : properties.items()) {
    ++patterns;
    if (Status fits = check_pattern(pattern); !fits) return fits;
  }
  return {};
}

Status check_member(const std::string& name, const Json& value, size_t& patterns) {
  if (name == "allOf" && value.is_array()) return check_intersection(value);
  if (name == "patternProperties" && value.is_object()) return check_patterns_of(value, patterns);
  if (name != "pattern" || !value.is_string()) return {};
  ++patterns;
  return check_pattern(value.get_ref<const std::string&>());
}

/// Requires bounded depth.
Status check_schema(const Json& schema, size_t& patterns) {
  for (const auto& [name, value] : schema.items()) {
    if (Status fits = check_member(name, value, patterns); !fits) return fits;
    if (patterns > kMostPatterns) return over("patterns", patterns, kMostPatterns);
    if (!value.is_structured()) continue;
    if (Status fits = check_schema(value, patterns); !fits) return fits;
  }
  return {};
}

Status check_json(std::string_view source) {
  const Json schema = Json::parse(source, nullptr, false);
  if (!schema.is_object()) {
    return Error{ErrorCode::kInvalid, "the grammar is no JSON schema: an object", "grammar"};
  }
  size_t patterns = 0;
  return check_schema(schema, patterns);
}

/// The object that the text begins with, by its brackets.
std::string_view json_at(std::string_view text) {
  size_t depth = 0;
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted && c == '\\') ++i;
    if (is_quoted) continue;
    if (c == '{') ++depth;
    if (c == '}' && (depth -= depth > 0) == 0) return text.substr(0, i + 1);
  }
  return text;
}

/// Its schemas stand behind %json.
Status check_lark(const std::string& source) {
  if (Repeats().of(source) > kMostRepeats) return too_many_repeats();
  constexpr std::string_view kSchema = "%json";
  size_t patterns = 0;
  for (size_t at = source.find(kSchema); at != std::string::npos; at = source.find(kSchema, at)) {
    at += kSchema.size();
    at = std::min(source.find_first_not_of(" \t", at), source.size());
    if (at == source.size() || source[at] != '{') continue;
    const std::string_view text = json_at(std::string_view(source).substr(at));
    at += text.size();
    const Json schema = Json::parse(text, nullptr, false);  // if it is none, the compiler says so
    if (!schema.is_structured()) continue;
    if (Status fits = check_schema(schema, patterns); !fits) return fits;
  }
  return {};
}

}  // namespace

Status check_source(const gen::Grammar& grammar) {
  const std::string& source = grammar.source;
  if (source.size() > gen::Grammar::kMostBytes) {
    return over("bytes", source.size(), gen::Grammar::kMostBytes);
  }
  // Before anything is parsed into a tree.
  if (Status fits = check_depth(source); !fits) return fits;
  switch (grammar.kind) {
    case gen::GrammarKind::kJsonSchema:
      return check_json(source);
    case gen::GrammarKind::kRegex:
      return check_pattern(source);
    case gen::GrammarKind::kLark:
      break;
  }
  return check_lark(source);
}

}  // namespace tandem::grammar
