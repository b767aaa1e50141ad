// Schemas of fields that are more than a number, a text or a switch.
#pragma once

#include <string>

#include "protocol/json.h"

namespace tandem::protocol::openapi {

/// "components": {"schemas": …}, but for "Model" and "Guards", which others know
const Json& components();

/// The schema of a field: of this endpoint's own if it has one, else of all that have such a field;
/// null when the field's reader says all there is.
Json shape_of(const std::string& endpoint, const std::string& field);

}  // namespace tandem::protocol::openapi
