// How an Error looks in Ollama's API.
#pragma once

#include "base/error.h"
#include "net/reply.h"
#include "protocol/json.h"

namespace tandem::protocol::ollama {

/// {"error": message}
Json error_body(const Error& error);

/// A whole response, with the status of the OpenAI wire.
net::Response error_response(const Error& error);

/// A fault in the shape of the OpenAI wire (net::fault), as one of this.
void restate_fault(net::Response& fault);

}  // namespace tandem::protocol::ollama
