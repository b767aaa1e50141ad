// The body of POST /v1/completions.
#pragma once

#include <string_view>

#include "protocol/wire_request.h"

namespace tandem::protocol::openai {

/// One prompt, as text or token ids. Errors as for parse_chat.
Result<WireRequest> parse_completion(std::string_view body, const ParseContext& context);

}  // namespace tandem::protocol::openai
