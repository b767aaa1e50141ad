// The bodies of Ollama's /api/chat and /api/generate.
#pragma once

#include <string_view>

#include "protocol/wire_request.h"

namespace tandem::protocol::ollama {

// Both stream unless told otherwise. kInvalid and kUnsupported name field, value and rule;
// kNotFound: another model. A request without anything to answer, by which clients load a model,
// has kNothing as its notes.

inline constexpr const char* kNothing = "nothing";

Result<WireRequest> parse_chat(std::string_view body, const ParseContext& context);
Result<WireRequest> parse_generate(std::string_view body, const ParseContext& context);

}  // namespace tandem::protocol::ollama
