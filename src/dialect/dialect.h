// A dialect: how a family of models writes tool calls, and how it is told from others.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dialect/layout.h"
#include "dialect/syntax.h"

namespace tandem::dialect {

/// What tells a dialect. The strings of one list must all be there.
struct Signs {
  std::vector<std::vector<std::string>> in_template = {};  // any of these lists
  std::vector<std::string> not_in_template = {};           // and none of these strings
  std::vector<std::string> in_vocabulary = {};             // where the template tells no dialect
  std::vector<std::string> parser_names = {};  // "tool_parser_type" of tokenizer_config.json
  int order = 100;                             // where several fit, the least counts
};

/// Immutable; thread-safe.
struct Dialect {
  std::string name;
  Signs signs = {};
  SyntaxPtr syntax;
  Layout layout = {};

  /// All calls of a turn stand in one section, so that nothing follows its end.
  bool has_call_section() const { return !layout.after.empty(); }
};

/// What a checkpoint shows of itself.
struct ModelSigns {
  std::string chat_template = {};  // sources of all variants; empty when there is none
  std::function<bool(std::string_view)> has_token = {};
  std::string parser_name = {};
};

/// All dialects, sorted by name.
const std::vector<Dialect>& all();

/// Null when there is none of that name.
const Dialect* find(std::string_view name);

/// The dialect that a model's template, tokenizer config or vocabulary shows; null when none does.
const Dialect* recognize(const ModelSigns& signs);

/// For models that show none: takes the forms that models fall into by themselves.
const Dialect& fallback();

}  // namespace tandem::dialect
