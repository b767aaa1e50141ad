// Where a conversation left the prompts that were known before it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chat/request.h"
#include "text/tokenizer.h"

namespace tandem::chat {

/// The first message of a conversation that is not as in the closest known prompt of its client.
/// No text.
struct Divergence {
  uint32_t message = 0;          // its index; a system text of the wire counts as a message
  std::string role;              // its
  uint32_t reusable_tokens = 0;  // in front of the first one that differs, which has this index
  uint32_t known_tokens = 0;     // of the known prompt and its answer
};

/// Tokens of a prompt that follow each other, and the text of the rendering that they stand for.
struct TextSpan {
  size_t tokens = 0;
  size_t begin = 0;  // in bytes
  size_t end = 0;
  bool is_turn = false;  // drawn tokens, in place of that text
};

/// Where in the rendering a token begins, about: of a turn, where its place begins.
size_t offset_of(size_t token,
                 const std::vector<gen::TokenId>& prompt,
                 const std::vector<TextSpan>& spans,
                 const text::Tokenizer& tokenizer);

/// The message that a place in the rendering belongs to, as far as its text tells.
size_t message_at(size_t offset, std::string_view rendering, const Json& messages);

}  // namespace tandem::chat
