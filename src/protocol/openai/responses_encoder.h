// Answers of POST /v1/responses.
#pragma once

#include <memory>

#include "protocol/answer.h"
#include "protocol/json.h"

namespace tandem::protocol::openai {

/// One choice only. `notes`: see make_notes.
std::unique_ptr<AnswerEncoder> make_responses_encoder(AnswerHead head, const Json& notes);

}  // namespace tandem::protocol::openai
