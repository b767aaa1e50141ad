// How an Error becomes a status, headers and a body: the only place that decides it.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "net/reply.h"
#include "protocol/json.h"

namespace tandem::protocol {

int status_of(const Error& error);

/// The machine-readable code, such as "context_length_exceeded".
std::string code_of(const Error& error);

/// {"error": {message, type, param, code}}
Json error_body(const Error& error);

/// The message of a fault in this shape (net::fault); nothing where it has none.
std::optional<std::string> message_of(const net::Response& fault);

/// A whole response; 429 and 503 carry Retry-After.
net::Response error_response(const Error& error);

}  // namespace tandem::protocol
