// Answers of POST /v1/chat/completions.
#pragma once

#include <memory>

#include "protocol/openai/encoding.h"

namespace tandem::protocol::openai {

std::unique_ptr<AnswerEncoder> make_chat_encoder(AnswerHead head);

}  // namespace tandem::protocol::openai
