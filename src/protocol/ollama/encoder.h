// Answers of Ollama's /api/chat and /api/generate.
#pragma once

#include <memory>
#include <string>

#include "protocol/answer.h"

namespace tandem::protocol::ollama {

/// Where the text stands: in a "message", with calls, or as the "response".
enum class Shape { kMessage, kResponse };

/// Streams are lines of JSON.
std::unique_ptr<AnswerEncoder> make_encoder(AnswerHead head, Shape shape);

/// The answer to a request with nothing to answer: the model is loaded.
std::string loaded_answer(const std::string& model, Shape shape);

/// The time now, as Ollama writes it: UTC, with nanoseconds.
std::string timestamp();

}  // namespace tandem::protocol::ollama
