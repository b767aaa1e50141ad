// Answers of POST /v1/completions.
#pragma once

#include <memory>
#include <string>

#include "protocol/openai/encoding.h"

namespace tandem::protocol::openai {

/// `echo` is put before each choice's text.
std::unique_ptr<AnswerEncoder> make_completion_encoder(AnswerHead head, std::string echo);

}  // namespace tandem::protocol::openai
