// "options" of a request: how to draw and when to end, and what concerns Ollama's own engine.
#pragma once

#include "protocol/wire_request.h"

namespace tandem::protocol::ollama {

/// Sampling, stop strings and max_tokens go to `out.request`; settings that have no effect here and
/// would change the answer there are warned of.
void read_options(Fields& fields, const ParseContext& context, WireRequest& out);

}  // namespace tandem::protocol::ollama
