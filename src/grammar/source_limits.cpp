#include "grammar/source_limits.h"

#include <string_view>

#include "grammar/lark_limits.h"
#include "grammar/limit_errors.h"
#include "grammar/pattern_limits.h"
#include "grammar/schema_limits.h"

namespace tandem::grammar {
namespace {

constexpr size_t kMostDepth = 100;

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

Status check_json(std::string_view source) {
  const auto schema = nlohmann::json::parse(source, nullptr, false);
  if (!schema.is_object()) {
    const char* got = schema.is_discarded() ? "no JSON" : schema.type_name();
    return Error{ErrorCode::kInvalid,
                 fmt::format("a JSON schema must be a JSON object, got {}", got), "grammar"};
  }
  return SchemaLimits().take(schema);
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
