// The answer of POST /v1/embeddings.
#pragma once

#include <cstdint>
#include <string>

#include "chat/embedding.h"

namespace tandem::protocol::openai {

/// The whole body: {object, data: [{object, index, embedding}], model, usage}. Vectors as numbers,
/// each the shortest that reads back as the same float, or as base64 of their bytes.
std::string encode_embeddings(const chat::Vectors& vectors,
                              bool is_base64,
                              const std::string& model,
                              uint64_t prompt_tokens);

}  // namespace tandem::protocol::openai
