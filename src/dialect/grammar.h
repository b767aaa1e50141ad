// Grammars under which a model can write nothing but calls, in its own dialect.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "dialect/dialect.h"
#include "dialect/parser.h"

namespace tandem::dialect {

struct GrammarRequest {
  const Tools& tools;
  std::string_view only = {};                    // the tool that must be called; empty: any
  bool parallel = true;                          // several calls
  std::optional<ThinkingMarkers> thinking = {};  // may come first; unset: no thinking
  bool in_thinking = false;                      // the prompt left it open

  /// Id of the token that stands for the string by itself, if there is one. Such tokens are not
  /// made of their letters.
  std::function<std::optional<int32_t>(std::string_view)> token = {};
};

/// A Lark grammar for llguidance: thinking if it may come, then one call or more. Arguments fit the
/// tools' schemas: as JSON schemas where the dialect writes JSON, else member by member in the
/// order of the schema. Text values end where their closing tag first appears. Requires a tool to
/// call.
std::string call_grammar(const Dialect& dialect, const GrammarRequest& request);

}  // namespace tandem::dialect
