// Answers of POST /v1/chat/completions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "protocol/answer.h"
#include "protocol/json.h"

namespace tandem::protocol::openai {

/// What every object of one answer says.
struct AnswerHead {
  std::string id;
  std::string model;
  std::string fingerprint;  // left out when empty
  int64_t created = 0;      // Unix seconds
  bool include_usage = false;
  bool logprobs = false;
};

std::unique_ptr<AnswerEncoder> make_chat_encoder(AnswerHead head);

/// {prompt_tokens, completion_tokens, total_tokens, details…}
Json encode_usage(const chat::Usage& usage);

const char* name(chat::FinishReason reason);

/// JSON has no infinity: as the OpenAI wire does, the unlikely is -9999.
double finite_logprob(float logprob);

}  // namespace tandem::protocol::openai
