// Answers of POST /v1/responses.
#pragma once

#include <memory>

#include "protocol/answer.h"
#include "protocol/json.h"

namespace tandem::protocol::openai {

/// One choice only. `notes`: see make_notes.
std::unique_ptr<AnswerEncoder> make_responses_encoder(AnswerHead head, const Json& notes);

/// An error of the conversation that a request's items make, by this wire's name for them.
Error of_responses(Error error);

}  // namespace tandem::protocol::openai
