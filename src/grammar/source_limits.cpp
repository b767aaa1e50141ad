#include "grammar/source_limits.h"

#include <string_view>

#include "grammar/lark_limits.h"
#include "grammar/limit_errors.h"
#include "grammar/pattern_limits.h"
#include "grammar/schema_limits.h"

namespace tandem::grammar {
namespace {

Status check_json(std::string_view source) {
  // Before it is gone through as a tree.
  if (Status fits = check_brackets(source); !fits) return fits;
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
  switch (grammar.kind) {
    case gen::GrammarKind::kJsonSchema:
      return check_json(source);
    case gen::GrammarKind::kRegex:
      return check_pattern(source);
    case gen::GrammarKind::kLark:
    case gen::GrammarKind::kAmbiguousLark:
      break;
  }
  return check_lark(source);
}

}  // namespace tandem::grammar
