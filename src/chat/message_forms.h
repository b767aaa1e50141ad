// Other ways to write the same messages, for templates that are particular about roles.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/request.h"

namespace tandem::chat {

/// Messages with string contents: null and missing become "", lists of text parts are joined, tool
/// arguments given as JSON text become objects; "developer" becomes "system" unless known. kInvalid
/// (field "messages") when a message is not an object with a role, or has content of another kind.
Result<Json> plain_messages(const Json& messages, bool knows_developer);

/// The content of a message as text: a string, or the text parts of a list; else empty.
std::string message_text(const Json& message);

/// For templates that read thinking from `thinking`, and take either that or text beside calls:
/// such a message's text follows its thinking there. Requires plain messages.
void name_thinking(Json& messages);

/// Empty content beside calls becomes null.
void leave_out_blanks(Json& messages);

/// How many forms there are to try, mildest first: the messages as they are, then what templates
/// that refuse them may take.
constexpr size_t kMessageForms = 10;

/// One of these forms; it may be the same as an earlier one. Requires plain messages.
Json form_of(const Json& messages, size_t form);

/// True when the text of every system message but an opening one (which templates may rework) is in
/// the prompt. White space at its ends does not count.
bool has_late_system_texts(std::string_view prompt, const Json& messages);

}  // namespace tandem::chat
