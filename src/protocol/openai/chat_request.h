// The body of POST /v1/chat/completions.
#pragma once

#include <string_view>

#include "protocol/wire_request.h"

namespace tandem::protocol::openai {

/// kInvalid and kUnsupported name field, value and rule; kNotFound: another model.
Result<WireRequest> parse_chat(std::string_view body, const ParseContext& context);

}  // namespace tandem::protocol::openai
