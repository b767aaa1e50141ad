// Input items of POST /v1/responses, in the form that chat templates read.
#pragma once

#include <vector>

#include "chat/service.h"
#include "protocol/fields.h"
#include "protocol/openai/responses_tools.h"

namespace tandem::protocol::openai {

/// Messages of instructions, of items that came before (`history`; `history_name`: the field that
/// named them), and of input. Reasoning, text and calls of one answer become one message of the
/// assistant. Items that nobody here made, such as searches, are left out with a warning; an item
/// of additional tools adds them to `tools`. Errors are kept in `fields`, with the place.
Json read_input(Fields& fields,
                ResponsesTools& tools,
                const Json& history,
                const char* history_name,
                std::vector<chat::Warning>& warnings);

/// Keeps an error in `fields` where an item of the field `name` could not be part of an input.
void check_items(Fields& fields, const Json& items, const char* name);

}  // namespace tandem::protocol::openai
