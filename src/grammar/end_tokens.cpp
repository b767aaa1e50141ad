#include "grammar/end_tokens.h"

#include <fmt/format.h>

#include <charconv>

#include "grammar/lark_limits.h"

namespace tandem::grammar {
namespace {

/// The number that the text begins with, which it loses; -1 when it begins with none.
int64_t take_number(std::string_view& text) {
  int64_t number = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
  return number;
}

/// Of "3-9,17".
bool is_in_ranges(text::TokenId id, std::string_view ranges) {
  while (!ranges.empty()) {
    std::string_view one = ranges.substr(0, ranges.find(','));
    ranges.remove_prefix(std::min(one.size() + 1, ranges.size()));
    const int64_t first = take_number(one);
    int64_t last = first;
    if (one.starts_with('-')) {
      one.remove_prefix(1);
      last = take_number(one);
    }
    if (first <= id && id <= last) return true;
  }
  return false;
}

/// Whether a token as Lark names it, in its angle brackets, may be this one.
bool stands_for(std::string_view word, text::TokenId id, const text::Tokenizer& tokenizer) {
  if (!word.starts_with("<[") || !word.ends_with("]>")) return tokenizer.id(word) == id;
  std::string_view ranges = word.substr(2, word.size() - 4);
  if (ranges == "*") return true;
  if (!ranges.starts_with('^')) return is_in_ranges(id, ranges);
  ranges.remove_prefix(1);
  return !is_in_ranges(id, ranges);
}

}  // namespace

Status check_end_tokens(std::string_view lark,
                        const text::Tokenizer& tokenizer,
                        std::span<const text::TokenId> eos) {
  for (const std::string_view word : tokens_in_lark(lark)) {
    for (const text::TokenId id : eos) {
      if (!stands_for(word, id, tokenizer)) continue;
      return Error{
          ErrorCode::kInvalid,
          fmt::format("the grammar has {}, but the token {} ends answers of this model, also "
                      "where the grammar goes on: leave it out, an answer ends where its "
                      "grammar does",
                      word.substr(0, 80), id),
          "grammar"};
    }
  }
  return {};
}

}  // namespace tandem::grammar
