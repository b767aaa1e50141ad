// Answers of POST /v1/messages.
#pragma once

#include <memory>
#include <string>

#include "protocol/answer.h"

namespace tandem::protocol::anthropic {

/// For how long a client may see nothing but pings. Claude Code gives up a stream after 300 s
/// without a part of an answer; pings do not count.
constexpr std::chrono::seconds kPatience{120};

/// One choice only. Blocks come strictly one after another; text that is white space alone is no
/// block. Thoughts are signed with the key.
std::unique_ptr<AnswerEncoder> make_messages_encoder(AnswerHead head);

}  // namespace tandem::protocol::anthropic
