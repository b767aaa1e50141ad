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

/// Finds texts that follow each other. What is read in vain, where a template left texts out, is
/// bounded in all: behind that nothing is found any more.
class Finder {
 public:
  explicit Finder(std::string_view rendering)
      : rendering_(rendering), left_(kMostVainReadings * rendering.size()) {}

  /// Where the text begins, from `from` on and before `until`; npos: nowhere.
  size_t find(std::string_view text, size_t from, size_t until = std::string_view::npos) {
    text = text.substr(0, kNeedle);
    until = std::min(until, rendering_.size());
    const size_t reach = std::min(until - std::min(from, until) + text.size(), left_);
    const std::string_view within = rendering_.substr(from, reach);
    const size_t found = within.find(text);
    if (found != std::string_view::npos) return from + found;
    left_ -= within.size();
    return found;
  }

 private:
  static constexpr size_t kMostVainReadings = 8;  // of the whole rendering

  const std::string_view rendering_;
  size_t left_;  // bytes
};

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
  Finder finder(rendering);
  size_t at = 0;          // behind what was found so far
  size_t last = 0;        // the message that this is of
  bool has_more = false;  // arguments follow, whose spelling is the template's
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto words = words_of(messages[i]);
    for (size_t word = 0; word < words.size(); ++word) {
      const std::string_view text = words[word];
      // Thoughts that a template leaves out are sought no further than what follows them.
      const bool is_first = word == 0 && words.size() > 1;
      const size_t until = is_first ? finder.find(words[1], at) : std::string_view::npos;
      const size_t found = finder.find(text, at, until);
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
