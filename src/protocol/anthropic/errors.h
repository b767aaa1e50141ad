// How an Error looks on the Anthropic wire.
#pragma once

#include "base/error.h"
#include "net/reply.h"
#include "protocol/json.h"

namespace tandem::protocol::anthropic {

/// As on the OpenAI wire, but 529 when nothing is there to serve it now.
int status_of(const Error& error);

/// {"type": "error", "error": {type, message}}
Json error_body(const Error& error);

/// A whole response; 429 and 529 carry Retry-After.
net::Response error_response(const Error& error);

/// A fault in the shape of the OpenAI wire (net::fault), as one of this.
void restate_fault(net::Response& fault);

}  // namespace tandem::protocol::anthropic
