// The events of a response's stream, read back from their bytes.
#pragma once

#include <string_view>
#include <vector>

#include "protocol/json.h"

namespace tandem::protocol::openai {

/// The events that a piece of a stream consists of, each with its end; comments are left out.
std::vector<std::string_view> events_in(std::string_view piece);

/// The name in "event: NAME"; empty when there is none.
std::string_view event_name(std::string_view event);

/// The object in its "data:".
Json event_data(std::string_view event);

/// Whether the event of this name ends a stream.
bool is_end(std::string_view name);

}  // namespace tandem::protocol::openai
