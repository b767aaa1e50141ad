// What all wires do to messages before templates see them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/service.h"
#include "protocol/json.h"

namespace tandem::protocol {

/// The text without a line of "x-anthropic-…: key=value; …" at its start, by which Claude Code
/// tells its server about itself. It differs between sessions, so that no prompt behind it could be
/// reused, and means nothing to a model.
std::string_view without_request_line(std::string_view system);

/// The same for an opening system message, which goes when nothing is left of it.
void drop_request_line(Json& messages);

/// Gives results of tools, which name their call by its id, the name of the function too: some
/// templates need it.
void name_tool_results(Json& messages);

/// True when the last message is the beginning of an answer: the assistant's, with text and without
/// calls.
bool ends_with_answer(const Json& messages);

/// Whether there is nothing but white space, as JSON has it.
bool is_blank(std::string_view text);

/// What stands for a part of a tool's result that is not text, such as an image. Warns once.
std::string left_out_of_result(std::string_view type, std::vector<chat::Warning>& warnings);

/// Adds a warning, unless there is an equal one.
void warn(std::vector<chat::Warning>& warnings, chat::Warning warning);

}  // namespace tandem::protocol
