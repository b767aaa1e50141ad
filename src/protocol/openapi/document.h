// The OpenAPI document of the routes, made of what they and their parsers say.
#pragma once

#include <string>
#include <vector>

#include "protocol/wire_request.h"

namespace tandem::protocol::openapi {

/// OpenAPI 3.1. Bodies are described by running their parsers, so that no field stands twice.
Json make_document(const ParseContext& context);

/// What the parser of a body asks for, given a smallest body that is whole.
using Parse = Result<WireRequest> (*)(std::string_view body, const ParseContext& context);

/// Routes of routes.inc that no operation describes, and the other way round: both must be none.
std::vector<std::string> mismatches();

}  // namespace tandem::protocol::openapi
