// Tools of chats, in the form that chat templates read.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "chat/service.h"
#include "protocol/fields.h"
#include "protocol/openai/custom_tools.h"

namespace tandem::protocol::openai {

struct ChatTools {
  Json functions = nullptr;  // null when there are no tools
  TextRules text_rules;
  std::set<std::string> custom;  // those that take one text
};

/// The tools of a chat: functions as they were sent, and custom tools. A name belongs to one tool
/// where a custom one has it. Errors are kept in `fields`; a grammar that cannot be enforced is
/// told of.
ChatTools read_tools(Fields& fields, std::vector<chat::Warning>& warnings);

/// The same of wires without custom tools: the functions as they were sent, or null.
Json read_functions(Fields& fields);

}  // namespace tandem::protocol::openai
