#include "chat/hesitation.h"

#include <algorithm>
#include <set>
#include <string>

#include "dialect/json_text.h"

namespace tandem::chat {
namespace {

/// As they are spelled where they begin a sentence, and inside one where they mean the same there.
constexpr std::string_view kWords[] = {"Wait", "wait", "Hmm",      "hmm",
                                       "Hm",   "Oops", "Actually", "Alternatively"};

/// The beginning of a word tells it from this many letters on.
constexpr size_t kTellingLetters = 5;

bool is_word(std::string_view text) { return std::ranges::find(kWords, text) != std::end(kWords); }

}  // namespace

std::vector<text::TokenId> hesitation_tokens(const text::Tokenizer& tokenizer) {
  std::set<text::TokenId> found;
  for (text::TokenId id = 0; id < tokenizer.size(); ++id) {
    if (!tokenizer.is_special(id) && is_word(dialect::trimmed(tokenizer.bytes(id)))) {
      found.insert(id);
    }
  }
  for (const std::string_view word : kWords) {
    for (const char* space : {"", " "}) {
      const auto ids = tokenizer.encode(space + std::string(word), false);
      if (!ids || ids->empty()) continue;
      const std::string_view first = dialect::trimmed(tokenizer.bytes(ids->front()));
      if (first.size() >= kTellingLetters && word.starts_with(first)) found.insert(ids->front());
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace tandem::chat
