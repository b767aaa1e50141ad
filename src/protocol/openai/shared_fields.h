// Fields that both OpenAI wires have, besides those of all wires.
#pragma once

#include "protocol/wire_request.h"

namespace tandem::protocol::openai {

/// Reads what read_generation reads, stream_options, n, stop and response_format. Errors are kept
/// in `fields`.
void read_shared(Fields& fields, const ParseContext& context, WireRequest& out);

}  // namespace tandem::protocol::openai
