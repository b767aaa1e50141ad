#include "grammar/matcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "grammar/matcher_errors.h"

namespace tandem::grammar {

Matcher::Matcher(text::bridge::MatcherHandle handle, uint32_t logits)
    : handle_(std::move(handle)), words_((logits + 31) / 32) {}

Status Matcher::take(std::span<const gen::TokenId> tokens) {
  const std::vector<uint32_t> ids(tokens.begin(), tokens.end());
  if (Status taken = text::bridge::consume(*handle_, ids); !taken) {
    const std::string& why = taken.error().message;
    Error error = matcher_error(why);
    if (error.code == ErrorCode::kTooLarge) return error;
    return Error{ErrorCode::kInvalid, fmt::format("the answer does not fit its grammar: {}", why),
                 "grammar"};
  }
  return {};
}

Result<gen::TokenMask> Matcher::allowed() {
  gen::TokenMask mask(words_);
  if (Status filled = text::bridge::fill_mask(*handle_, mask); !filled) {
    return matcher_error(filled.error().message);
  }
  if (std::ranges::all_of(mask, [](uint32_t word) { return word == 0; })) {
    return Error{ErrorCode::kInvalid, "the grammar leads to a place from which no token goes on",
                 "grammar"};
  }
  return mask;
}

}  // namespace tandem::grammar
