// Messages of Ollama's /api/chat, as those of the OpenAI wire.
#pragma once

#include <vector>

#include "chat/service.h"
#include "protocol/fields.h"

namespace tandem::protocol::ollama {

/// As openai::read_messages() gives them. Calls and results come without ids from older clients:
/// they get some by their order, which templates may need. Images are refused with their place.
Json read_messages(Fields& fields, std::vector<chat::Warning>& warnings);

}  // namespace tandem::protocol::ollama
