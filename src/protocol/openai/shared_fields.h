// Fields that both OpenAI wires have, besides those of all wires.
#pragma once

#include "protocol/wire_request.h"

namespace tandem::protocol::openai {

/// Reads what read_generation reads, stream_options, n, stop and response_format. Errors are kept
/// in `fields`.
void read_shared(Fields& fields, const ParseContext& context, WireRequest& out);

/// `logprobs`, of the tokens drawn, and `top_logprobs`, of others at their places: of chats, here
/// and in Ollama's API. `least` of these is 0, or -1, which is none, too.
void read_logprobs(Fields& fields, const ParseContext& context, int64_t least, chat::Request& out);

/// `metadata`, whose bounds are those of the OpenAI API: 16 texts of 512 characters, under names of
/// 64.
void check_metadata(Fields& fields);

}  // namespace tandem::protocol::openai
