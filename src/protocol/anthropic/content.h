// Messages of the Anthropic wire, in the form that chat templates read.
#pragma once

#include <vector>

#include "chat/service.h"
#include "protocol/fields.h"
#include "protocol/json.h"

namespace tandem::protocol::anthropic {

/// The system text, when there is any, and all messages. Blocks become what templates know: results
/// of tools messages of their own before the text beside them, thinking reasoning_content, uses of
/// tools tool_calls. cache_control is not looked at. Thinking is kept whoever wrote it; a
/// signature, and what redacted thinking holds, goes along as chat::kTurnHandle, by which an answer
/// of this server is found again. Redacted thinking of others cannot be read by anybody and is
/// dropped.
///
/// Errors are kept in `fields`, with the place. What is left out goes to `warnings`.
Json read_messages(Fields& fields, std::vector<chat::Warning>& warnings);

}  // namespace tandem::protocol::anthropic
