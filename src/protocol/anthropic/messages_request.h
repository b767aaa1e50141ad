// The body of POST /v1/messages, and of /v1/messages/count_tokens.
#pragma once

#include <string_view>

#include "protocol/wire_request.h"

namespace tandem::protocol::anthropic {

/// A last message of the assistant is gone on with. Errors as for parse_chat.
Result<WireRequest> parse_messages(std::string_view body, const ParseContext& context);

}  // namespace tandem::protocol::anthropic
