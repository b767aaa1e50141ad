// What answers of both OpenAI wires have in common.
#pragma once

#include <string>
#include <vector>

#include "protocol/answer.h"
#include "protocol/json.h"

namespace tandem::protocol::openai {

/// An object of the answer as it begins.
Json encode_head(const AnswerHead& head, const char* object);

/// {prompt_tokens, completion_tokens, total_tokens, details…}
Json encode_usage(const chat::Usage& usage);

/// The end of a stream: a chunk with the usage when it was asked for, then [DONE].
std::string encode_close(const AnswerHead& head, const char* object, const chat::Usage& total);

/// Drawn tokens, each {token, logprob, bytes, top_logprobs: the same of the likeliest}.
Json encode_tokens(const std::vector<chat::LogprobEntry>& entries);

/// JSON has no infinity: as the OpenAI wire does, the unlikely is -9999.
double finite_logprob(float logprob);

}  // namespace tandem::protocol::openai
