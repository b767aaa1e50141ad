// Chat messages and tools of the OpenAI wire, in the form that chat templates read.
#pragma once

#include <vector>

#include "chat/service.h"
#include "protocol/fields.h"
#include "protocol/json.h"

namespace tandem::protocol::openai {

/// Messages with joined text, parsed tool-call arguments and no null content. Fields that templates
/// do not read are left out. Errors are kept in `fields`, with the place; what is left out of tool
/// results goes to `warnings`.
Json read_messages(Fields& fields, std::vector<chat::Warning>& warnings);

/// The tools as sent, or null. Each must be a named function.
Json read_tools(Fields& fields);

}  // namespace tandem::protocol::openai
