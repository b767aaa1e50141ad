// Chat messages of the OpenAI wire, in the form that chat templates read.
#pragma once

#include <vector>

#include "chat/service.h"
#include "protocol/fields.h"
#include "protocol/json.h"

namespace tandem::protocol::openai {

/// Messages with joined text, parsed tool-call arguments and no null content. Calls of custom tools
/// are those of functions of one string. Fields that templates do not read are left out. Errors are
/// kept in `fields`, with the place; what is left out of tool results goes to `warnings`.
Json read_messages(Fields& fields, std::vector<chat::Warning>& warnings);

/// Text of a string, null or parts. Parts that are not text are refused with their place, in
/// results of tools replaced and warned of: a client cannot take them back.
Result<std::string> read_content(const Json& content,
                                 const std::string& place,
                                 bool is_result,
                                 std::vector<chat::Warning>& warnings);

/// The "arguments" of a call: JSON text or an object; none are an empty object. Text that is no
/// JSON, which clients keep when a call failed by it, becomes {"unparsed_arguments": text}: the
/// model sees what it wrote, and templates an object. Warns of it.
Json read_arguments(const Json& function, std::vector<chat::Warning>& warnings);

}  // namespace tandem::protocol::openai
