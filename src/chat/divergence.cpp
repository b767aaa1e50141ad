#include "chat/divergence.h"

#include <algorithm>

#include "dialect/json_text.h"

namespace tandem::chat {
namespace {

/// As much of a text as finds it.
constexpr size_t kNeedle = 256;

std::string_view words_in(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  return dialect::trimmed(found->get_ref<const std::string&>());
}

/// The words a message begins with in most templates: thinking, text, the name of a call.
std::vector<std::string_view> words_of(const Json& message) {
  std::vector<std::string_view> words = {words_in(message, "reasoning_content"),
                                         words_in(message, "content")};
  if (const auto calls = message.find("tool_calls"); calls != message.end() && calls->is_array()) {
    for (const Json& call : *calls) {
      const auto function = call.is_object() ? call.find("function") : call.end();
      if (call.is_object() && function != call.end()) words.push_back(words_in(*function, "name"));
    }
  }
  std::erase(words, std::string_view());
  return words;
}

}  // namespace

size_t offset_of(size_t token,
                 const std::vector<gen::TokenId>& prompt,
                 const std::vector<TextSpan>& spans,
                 const text::Tokenizer& tokenizer) {
  size_t first = 0;
  for (const TextSpan& span : spans) {
    if (token >= first + span.tokens) {
      first += span.tokens;
      continue;
    }
    if (span.is_turn) return span.begin;
    size_t offset = span.begin;
    for (size_t i = first; i < token; ++i) offset += tokenizer.bytes(prompt[i]).size();
    return std::min(offset, span.end);
  }
  return spans.empty() ? 0 : spans.back().end;
}

size_t message_at(size_t offset, std::string_view rendering, const Json& messages) {
  size_t at = 0;          // behind what was found so far
  size_t last = 0;        // the message that this is of
  bool has_more = false;  // arguments follow, whose spelling is the template's
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto words = words_of(messages[i]);
    for (const std::string_view text : words) {
      const size_t found = rendering.find(text.substr(0, kNeedle), at);
      if (found == std::string_view::npos) continue;
      if (found > offset) return has_more && i > last ? last : i;
      at = std::min(found + text.size(), rendering.size());
      last = i;
    }
    has_more = messages[i].is_object() && messages[i].contains("tool_calls");
    if (at > offset) return i;
  }
  return messages.empty() ? 0 : messages.size() - 1;
}

}  // namespace tandem::chat
