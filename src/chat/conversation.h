// Conversations to prompts, whatever the template's taste.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/request.h"
#include "dialect/dialect.h"
#include "text/template.h"
#include "text/tokenizer.h"

namespace tandem::chat {

/// What a model brings to every rendering.
struct RenderSettings {
  const text::ChatTemplate& chat_template;
  const Json& default_arguments;  // the request's own win
  bool has_thinking = false;      // enable_thinking, unless an argument says otherwise
  const dialect::Dialect* describes_tools = nullptr;  // set: the template knows no tools, and they
                                                      // are described in this dialect
  text::LocalTime now;
};

/// Renders the conversation as it is; when the template refuses it or leaves a system message out,
/// in other forms of the same content: neighbours of one role merged, later system messages as
/// user's, system text inside the first user message, tool-call arguments as text. A developer is a
/// system for templates that do not know the role. Content may be null (as empty) or a list of text
/// parts (joined).
///
/// kInvalid, field "messages": no messages, content of another kind, or the template's own message
/// about the conversation as it is.
Result<std::string> render(const Conversation& conversation, const RenderSettings& settings);

/// A prompt, and which of the forms it is of: the number is the same for all conversations with the
/// same roles, names and kinds of content.
struct Rendering {
  std::string text;
  size_t form = 0;
};
Result<Rendering> render_any(const Conversation& conversation, const RenderSettings& settings);

/// Renders one form. kInvalid when there is none of that number, or the template refuses it.
Result<std::string> render_form(const Conversation& conversation,
                                const RenderSettings& settings,
                                size_t form);

/// True when the prompt leaves a thinking block open: its last start marker has only white space
/// behind it, or (`continues`) no end marker.
bool ends_in_thinking(std::string_view prompt,
                      const text::ThinkingMarkers& markers,
                      bool continues);

}  // namespace tandem::chat
