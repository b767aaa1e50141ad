// Schemas of answers.
#pragma once

#include <string>

#include "protocol/json.h"

namespace tandem::protocol::openapi {

/// Schemas of answers and their parts, for "components".
const Json& answer_components();

/// The schema of a whole answer to a route of routes.inc; null where it is not JSON.
Json answer_of(const std::string& method, const std::string& path);

}  // namespace tandem::protocol::openapi
