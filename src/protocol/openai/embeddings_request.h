// The body of POST /v1/embeddings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/wire_request.h"

namespace tandem::protocol::openai {

/// Inputs of one request, at most.
inline constexpr size_t kMostInputs = 2048;

struct EmbeddingsRequest {
  chat::EmbeddingRequest request;  // without id and client
  std::string model;               // as WireRequest has it
  bool is_base64 = false;          // vectors as the bytes of little-endian floats
  std::vector<std::string> ignored;
};

Result<EmbeddingsRequest> parse_embeddings(std::string_view body, const ParseContext& context);

}  // namespace tandem::protocol::openai
