#include "protocol/openai/responses_tools.h"

#include <fmt/format.h>

#include "chat/lark_regex.h"
#include "protocol/message_rules.h"

namespace tandem::protocol::openai {
namespace {

constexpr size_t kMaxNameBytes = 512;
constexpr size_t kMaxTypeBytes = 128;

Json make_function(const std::string& name, const std::string& description, Json parameters) {
  Json function;
  function["name"] = name;
  if (!description.empty()) function["description"] = description;
  function["parameters"] = std::move(parameters);
  return Json{{"type", "function"}, {"function", std::move(function)}};
}

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
};

/// {"type": "text"} or {"type": "grammar", "syntax": "lark" or "regex", "definition"}; OpenAI's
/// other wire has the last two in a "grammar".
TextGrammar read_text_grammar(Fields& tool, const std::string& place) {
  const Json* format = tool.object("format");
  if (!format) return {};
  Fields outer(*format, place + ".format.");
  const std::string type = outer.string("type", kMaxTypeBytes).value_or("");
  const Json* nested = outer.object("grammar");
  TextGrammar out;
  if (type != "text" && type != "grammar") {
    outer.refuse("type", R"(must be "text" or "grammar")");
  }
  Fields inner(nested ? *nested : *format, place + (nested ? ".format.grammar." : ".format."));
  if (type == "grammar") {
    out.syntax = inner.string("syntax", kMaxTypeBytes).value_or("");
    out.definition = inner.string("definition", SIZE_MAX).value_or("");
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

}  // namespace

std::string ResponsesTools::joined(const std::string& name_space, const std::string& name) {
  return name_space.empty() ? name : name_space + "__" + name;
}

void ResponsesTools::add(Fields& fields,
                         const Json& tools,
                         const std::string& place,
                         std::vector<chat::Warning>& warnings) {
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", place, i);
    if (!tools[i].is_object()) {
      return fields.refuse(here, "must be an object, not " + excerpt(tools[i]));
    }
    Fields tool(tools[i], here + ".");
    if (tool.string("type", kMaxTypeBytes) != "namespace") {
      add_one(fields, tools[i], here, {}, warnings);
      continue;
    }
    const std::string name = tool.string("name", kMaxNameBytes).value_or("");
    const Json* inner = tool.array("tools");
    if (tool.error()) fields.keep(*tool.error());
    for (size_t k = 0; inner && k < inner->size(); ++k) {
      add_one(fields, (*inner)[k], fmt::format("{}.tools[{}]", here, k), name, warnings);
    }
  }
}

/// One with a grammar is bound by it wherever it is called.
void ResponsesTools::add_custom(Fields& tool,
                                const std::string& seen,
                                const std::string& place,
                                std::vector<chat::Warning>& warnings) {
  const TextGrammar grammar = read_text_grammar(tool, place);
  if (tool.error()) return;
  functions.push_back(make_function(seen, custom_description(tool, grammar), text_parameters()));
  if (grammar.definition.empty()) return;
  const std::string field = place + ".format.definition";
  if (grammar.syntax == "regex") {
    text_rules[seen] = {.pattern = grammar.definition, .field = field};
    return;
  }
  auto pattern = chat::regex_of_lark(grammar.definition);
  if (pattern) {
    text_rules[seen] = {.pattern = *std::move(pattern), .field = field};
  } else if (pattern.error().code == ErrorCode::kUnsupported) {
    warn(warnings, {.code = "grammar_not_enforced",
                    .message = fmt::format("the grammar of the tool \"{}\" is shown to the model, "
                                           "and not enforced: {}",
                                           shortened(seen, 80), pattern.error().message)});
  } else {
    Error error = pattern.error();
    error.field = field;
    tool.keep(std::move(error));
  }
}

void ResponsesTools::add_one(Fields& fields,
                             const Json& tool,
                             const std::string& place,
                             const std::string& name_space,
                             std::vector<chat::Warning>& warnings) {
  if (!tool.is_object()) return fields.refuse(place, "must be an object, not " + excerpt(tool));
  Fields outer(tool, place + ".");
  const std::string type = outer.string("type", kMaxTypeBytes).value_or("");
  if (outer.error()) return fields.keep(*outer.error());
  if (type != "function" && type != "custom") {
    return warn(warnings, {.code = "tool_left_out",
                           .message = fmt::format("tools of type {} are not offered here",
                                                  literal(shortened(type, 40)))});
  }
  // Some clients send a function in the shape of chat completions.
  const Json* nested = type == "function" ? outer.object("function") : nullptr;
  Fields inner(nested ? *nested : tool, place + ".");
  const std::string name = inner.string("name", kMaxNameBytes).value_or("");
  if (name.empty()) inner.refuse("name", "must be a string that is not empty");
  const std::string seen = joined(name_space, name);
  if (type == "custom") {
    add_custom(inner, seen, place, warnings);
  } else {
    const std::string description = inner.string("description", SIZE_MAX).value_or("");
    const Json* schema = inner.object("parameters");
    functions.push_back(
        make_function(seen, description,
                      schema ? *schema : Json{{"type", "object"}, {"properties", Json::object()}}));
    if (inner.boolean("strict").value_or(false)) functions.back()["function"]["strict"] = true;
  }
  if (inner.error()) return fields.keep(*inner.error());
  if (type == "custom" || !name_space.empty()) {
    names[seen] = {.name = name, .name_space = name_space, .custom = type == "custom"};
  }
}

}  // namespace tandem::protocol::openai
