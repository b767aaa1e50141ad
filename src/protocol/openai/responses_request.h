// The body of POST /v1/responses.
#pragma once

#include <string_view>

#include "protocol/openai/responses_tools.h"
#include "protocol/wire_request.h"

namespace tandem::protocol::openai {

/// `notes` of the result is what make_notes gives. Errors as for parse_chat; kNotFound also for a
/// previous response: none is kept.
Result<WireRequest> parse_responses(std::string_view body, const ParseContext& context);

/// What the encoder wants to know of a request: {"echo": fields to repeat, "names": …}.
Json make_notes(Json echo, const ToolNames& names);
ToolNames names_in(const Json& notes);

}  // namespace tandem::protocol::openai
