// Grammars of answers in a model's own dialect: of calls, and of text that must have a form.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dialect/dialect.h"
#include "dialect/parser.h"

namespace tandem::dialect {

struct GrammarRequest {
  const Tools& tools;
  std::vector<std::string> only = {};            // the tools that may be called; empty: all
  bool parallel = true;                          // several calls
  std::optional<ThinkingMarkers> thinking = {};  // of the model, where the syntax has none itself
  bool may_think = true;                         // thinking may come first
  bool in_thinking = false;                      // the prompt left it open
  /// What stands between the end marker and text that is not JSON, of which it is no part.
  std::string behind_thinking = {};

  /// Id of the token that stands for the string by itself, if there is one. Such tokens are not
  /// made of their letters.
  std::function<std::optional<int32_t>(std::string_view)> token = {};
};

/// A Lark grammar for llguidance: thinking if it may come, then one call or more. Arguments fit the
/// tools' schemas: as JSON schemas where the dialect writes JSON, else member by member in the
/// order of the schema. Text values end where their closing tag first appears. Requires a tool to
/// call.
///
/// Error of all three: kInvalid with the field "grammar", where a strict tool's schema has what
/// calls of the dialect cannot be held to; names the tool and the keyword. What a tool that is not
/// strict has of that binds nothing. What no JSON can be held to shows when the grammar is
/// compiled.
Result<std::string> call_grammar(const Dialect& dialect, const GrammarRequest& request);

/// The same, where the answer is prose, in which calls may begin: from what a call begins with on
/// it is bound. Where calls need no marker that is JSON at the start of the text which names a
/// tool; where an answer is made of messages, one to a function. Requires a tool to call.
Result<std::string> open_grammar(const Dialect& dialect, const GrammarRequest& request);

/// The text that an answer must be.
struct TextForm {
  std::string expression;  // of Lark, such as %json {…}
  Json schema = nullptr;   // where it is JSON: its schema, an object
};

/// Thinking if it may come, then text of the form; with tools, that or calls.
Result<std::string> text_grammar(const Dialect& dialect,
                                 const GrammarRequest& request,
                                 const TextForm& form);

/// The expression of JSON that fits a schema, which must be an object. White space between its
/// parts is bounded: a space, or a line break with an indent.
std::string json_expression(const Json& schema);

/// References inside of a schema as they are from above it, where the schema stands at `place`,
/// such as "#/$defs/a".
void move_references(Json& schema, const std::string& place);

/// A schema that may be a part of a document: references that it has lead to the same places when
/// it stands without that.
Json standing_alone(const Json& schema, const Json* document);

/// The expression of text that a regular expression matches whole; \d and \w are of ASCII.
std::string regex_expression(std::string_view pattern);

/// The expression of one of these texts.
std::string choice_expression(const std::vector<std::string>& choices);

}  // namespace tandem::dialect
