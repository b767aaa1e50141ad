// Input items of POST /v1/responses, in the form that chat templates read.
#pragma once

#include <vector>

#include "chat/service.h"
#include "protocol/fields.h"
#include "protocol/openai/responses_tools.h"

namespace tandem::protocol::openai {

/// Messages of instructions, of items that came before (`history`), and of input. Reasoning, text
/// and calls of one answer become one message of the assistant. Items that nobody here made, such
/// as searches, are left out with a warning; an item of additional tools adds them to `tools`.
/// Errors are kept in `fields`, with the place.
Json read_input(Fields& fields,
                ResponsesTools& tools,
                const Json& history,
                std::vector<chat::Warning>& warnings);

}  // namespace tandem::protocol::openai
