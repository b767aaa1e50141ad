// Which dialect a model speaks, and what its requests are parsed by.
#pragma once

#include <memory>
#include <string>

#include "chat/request.h"
#include "dialect/parser.h"
#include "text/checkpoint_text.h"

namespace tandem::chat {

/// The dialect by its name, or (empty name) the one that the model shows; dialect::fallback() when
/// it shows none. Requires that the name is one.
const dialect::Dialect& dialect_of(const text::ModelText& model, const std::string& name);

/// What answers are parsed by. Null: raw prompts, whose answers are all text. With
/// `ends_after_calls` answers end behind their calls (the first, where one is wanted at a time).
/// `behind_thinking` is no text: see dialect::Rules.
std::shared_ptr<dialect::Rules> parser_rules(const Conversation* conversation,
                                             const dialect::Dialect& dialect,
                                             const text::ModelText& model,
                                             bool ends_after_calls,
                                             std::string behind_thinking);

/// True when the conversation declares tools that the model's template does not show to the model.
bool hides_tools(const Conversation& conversation, const text::ModelText& model);

/// The conversation for a template that knows no tools: they are described in the system message,
/// calls stand in the assistant's text, and results come from the user. Content must be text.
Json with_described_tools(Json messages, const Json& tools, const dialect::Dialect& dialect);

}  // namespace tandem::chat
