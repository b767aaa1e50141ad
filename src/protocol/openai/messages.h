// Chat messages and tools of the OpenAI wire, in the form that chat templates read.
#pragma once

#include "protocol/fields.h"
#include "protocol/json.h"

namespace tandem::protocol::openai {

/// Messages with joined text, parsed tool-call arguments and no null content. Fields that templates
/// do not read are left out. Errors are kept in `fields`, with the place.
Json read_messages(Fields& fields);

/// The tools as sent, or null. Each must be a named function.
Json read_tools(Fields& fields);

}  // namespace tandem::protocol::openai
