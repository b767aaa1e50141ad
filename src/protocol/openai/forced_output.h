// What the OpenAI wires say about calls that must come and about the form of text.
#pragma once

#include "chat/request.h"
#include "protocol/fields.h"

namespace tandem::protocol::openai {

/// tool_choice: auto, none (the tools are not shown), required, a named tool, or allowed_tools, of
/// which those of mode auto are the only ones shown. Reads the names of both wires. Requires the
/// conversation's tools.
void read_tool_choice(Fields& fields, chat::Conversation& conversation);

/// {"type": text, json_object or json_schema}, of which the last has the schema in itself or in
/// "json_schema". `field` names it in errors.
void read_format(const Json& format, const std::string& field, Fields& fields, chat::Request& out);

}  // namespace tandem::protocol::openai
