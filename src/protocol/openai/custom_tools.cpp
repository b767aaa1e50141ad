#include "protocol/openai/custom_tools.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "chat/lark_regex.h"
#include "protocol/message_rules.h"

namespace tandem::protocol::openai {
namespace {

constexpr size_t kMaxKindBytes = 128;

/// Of one text.
Json text_parameters() {
  return {{"type", "object"},
          {"properties", {{chat::kTextInput, {{"type", "string"}}}}},
          {"required", Json::array({chat::kTextInput})}};
}

/// The grammar of a custom tool; empty where it takes any text.
struct TextGrammar {
  std::string syntax;
  std::string definition;
  std::string field;  // of the definition
};

/// {"type": "text"} or {"type": "grammar", "syntax": "lark" or "regex", "definition"}, of which
/// chats have the last two in a "grammar".
TextGrammar read_text_grammar(Fields& tool, const std::string& place) {
  const Json* format = tool.object("format");
  if (!format) return {};
  Fields outer(*format, place + ".format.");
  const std::string type = outer.string("type", kMaxKindBytes).value_or("");
  const Json* nested = outer.object("grammar");
  const std::string inside = place + (nested ? ".format.grammar." : ".format.");
  TextGrammar out;
  if (type != "text" && type != "grammar") {
    outer.refuse("type", R"(must be "text" or "grammar")");
  }
  Fields inner(nested ? *nested : *format, inside);
  if (type == "grammar") {
    out.syntax = inner.string("syntax", kMaxKindBytes).value_or("");
    out.definition = inner.string("definition", SIZE_MAX).value_or("");
    out.field = inside + "definition";
    if (out.syntax != "lark" && out.syntax != "regex") {
      inner.refuse("syntax", R"(must be "lark" or "regex")");
    }
    if (out.definition.empty()) inner.refuse("definition", "must be a grammar, as text");
  }
  if (outer.error()) tool.keep(*outer.error());
  if (inner.error()) tool.keep(*inner.error());
  return out;
}

/// What a custom tool takes, in words.
std::string custom_description(Fields& tool, const TextGrammar& grammar) {
  std::string text = tool.string("description", SIZE_MAX).value_or("");
  if (grammar.definition.empty()) return text;
  if (!text.empty()) text += "\n\n";
  return text + "The input follows this grammar:\n" + grammar.definition;
}

/// The regular expression of a grammar; kUnsupported: there is none.
Result<std::string> expression_of(const TextGrammar& grammar) {
  if (grammar.syntax == "regex") return grammar.definition;
  return chat::regex_of_lark(grammar.definition);
}

/// One with a grammar is bound by it wherever it is called.
void add_rule(Fields& tool,
              const TextGrammar& grammar,
              const std::string& seen,
              TextRules& rules,
              std::vector<chat::Warning>& warnings) {
  auto pattern = expression_of(grammar);
  if (pattern) {
    rules[seen] = {.pattern = *std::move(pattern), .field = grammar.field};
  } else if (pattern.error().code == ErrorCode::kUnsupported) {
    warn(warnings, {.code = "grammar_not_enforced",
                    .message = fmt::format("the grammar of the tool \"{}\" is shown to the model, "
                                           "and not enforced: {}",
                                           shortened(seen, 80), pattern.error().message)});
  } else {
    Error error = pattern.error();
    error.field = grammar.field;
    tool.keep(std::move(error));
  }
}

}  // namespace

Json make_function(const std::string& name, const std::string& description, Json parameters) {
  Json function;
  function["name"] = name;
  if (!description.empty()) function["description"] = description;
  function["parameters"] = std::move(parameters);
  return Json{{"type", "function"}, {"function", std::move(function)}};
}

Json read_custom_tool(Fields& tool,
                      const std::string& seen,
                      const std::string& place,
                      TextRules& rules,
                      std::vector<chat::Warning>& warnings) {
  const TextGrammar grammar = read_text_grammar(tool, place);
  Json function = make_function(seen, custom_description(tool, grammar), text_parameters());
  if (tool.error()) return nullptr;
  if (!grammar.definition.empty()) add_rule(tool, grammar, seen, rules, warnings);
  if (tool.error()) return nullptr;
  return function;
}

Json custom_arguments(std::string input) { return Json{{chat::kTextInput, std::move(input)}}; }

}  // namespace tandem::protocol::openai
