// The body of POST /v1/responses.
#pragma once

#include <string_view>

#include "protocol/openai/responses_tools.h"
#include "protocol/wire_request.h"

namespace tandem::protocol::openai {

/// What the server keeps that belongs to a request.
struct KeptInput {
  bool offered = false;                        // whether it keeps anything
  Json history = Json::array();                // items of what the request goes on with
  const char* field = "previous_response_id";  // which named it
};

/// The conversation that a body names; empty: none.
std::string conversation_in(const Json& body);

/// `notes` of the result is what make_notes gives; "echo" has `store` and `background` as they are
/// done, and `conversation` as an object. References to items are resolved already where they can
/// be. Errors as for parse_chat; kNotFound also for a previous response where none is kept, and for
/// items that are not.
Result<WireRequest> parse_responses(const Json& body,
                                    const ParseContext& context,
                                    const KeptInput& kept);

/// The same where nothing is kept.
Result<WireRequest> parse_responses(std::string_view body, const ParseContext& context);

/// What the encoder wants to know of a request: {"echo": fields to repeat, "names": …}.
Json make_notes(Json echo, const ToolNames& names);
ToolNames names_in(const Json& notes);

}  // namespace tandem::protocol::openai
