#include "grammar/matcher_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace tandem::grammar {
namespace {

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

}  // namespace

Error matcher_error(std::string_view why) {
  if (has_any(why, {"NoExtensionBias"})) {
    return {
        ErrorCode::kInvalid,
        "no text fits the grammar: a rule, a schema or a pattern of it must allow something that "
        "has an end",
        "grammar"};
  }
  if (has_any(why, {"fuel", "items", "too big", "too large", "too many", "Too many"})) {
    return {ErrorCode::kTooLarge,
            fmt::format("the grammar leaves more ways open at once than can be followed: give it "
                        "fewer alternatives, optional parts or repetitions ({})",
                        why.substr(0, std::min<size_t>(why.find('\n'), 200))),
            "grammar"};
  }
  return {ErrorCode::kInvalid, fmt::format("the grammar cannot be used: {}", why), "grammar"};
}

}  // namespace tandem::grammar
