// Tools of the Anthropic wire, in the form that chat templates read.
#pragma once

#include <vector>

#include "chat/request.h"
#include "chat/service.h"
#include "protocol/fields.h"

namespace tandem::protocol::anthropic {

/// Reads tools and tool_choice into the conversation. Tools that have no schema of their own, since
/// Anthropic's servers run or describe them, are left out with a warning. Errors are kept in
/// `fields`.
void read_tools(Fields& fields,
                chat::Conversation& conversation,
                std::vector<chat::Warning>& warnings);

}  // namespace tandem::protocol::anthropic
