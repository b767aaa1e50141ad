// The body of POST /v1/chat/completions.
#pragma once

#include <string_view>

#include "protocol/wire_request.h"

namespace tandem::protocol::openai {

/// `notes` of the result are the names of custom tools, a list. kInvalid and kUnsupported name
/// field, value and rule; kNotFound: another model.
Result<WireRequest> parse_chat(std::string_view body, const ParseContext& context);

/// What of a body makes the prompt of a conversation, as out.request.input: messages, tools and
/// whether they are shown, what the template is given, what is gone on with. Errors are kept in
/// `fields`.
void read_conversation(Fields& fields, const ParseContext& context, WireRequest& out);

}  // namespace tandem::protocol::openai
