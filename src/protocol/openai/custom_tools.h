// Custom tools of both OpenAI wires: they take one text, and the model sees a function of one
// string, "input" (chat::kTextInput).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "chat/request.h"
#include "chat/service.h"
#include "protocol/fields.h"

namespace tandem::protocol::openai {

/// What binds the texts of custom tools with a grammar, by the name that the model sees.
using TextRules = std::map<std::string, chat::TextRule>;

/// A function as chat templates read it. Without a description it has none.
Json make_function(const std::string& name, const std::string& description, Json parameters);

/// The function that the model sees as `seen`, of a custom tool's {"description", "format"}, which
/// lies at `place`. Its grammar becomes a rule, or, where it cannot be enforced, a warning. Errors
/// are kept in `tool`; null then.
Json read_custom_tool(Fields& tool,
                      const std::string& seen,
                      const std::string& place,
                      TextRules& rules,
                      std::vector<chat::Warning>& warnings);

/// The arguments of that function for a text.
Json custom_arguments(std::string input);

}  // namespace tandem::protocol::openai
