// Answers of POST /v1/chat/completions.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "protocol/openai/encoding.h"

namespace tandem::protocol::openai {

/// `custom`: the tools whose calls have a text in place of arguments.
std::unique_ptr<AnswerEncoder> make_chat_encoder(AnswerHead head,
                                                 std::set<std::string> custom = {});

}  // namespace tandem::protocol::openai
