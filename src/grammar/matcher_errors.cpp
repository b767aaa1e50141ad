#include "grammar/matcher_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace tandem::grammar {
namespace {

constexpr size_t kMostOfCause = 300;  // of the library's words

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

/// What stands between the words and the end of the line, or the second of them.
std::string_view part(std::string_view why, std::string_view from, std::string_view to) {
  const size_t at = why.find(from);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = why.substr(at + from.size());
  return rest.substr(0, rest.find_first_of(to));
}

Error invalid_schema(std::string message) {
  return {ErrorCode::kInvalid, std::move(message), "grammar"};
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
  if (const auto keys = part(why, "Unimplemented keys: [", "]"); !keys.empty()) {
    return invalid_schema(fmt::format(
        "the schema has {}, which no grammar can hold an answer to: leave it out", keys));
  }
  if (const auto cause = part(why, "Unsatisfiable schema: ", "\n"); !cause.empty()) {
    return invalid_schema(fmt::format("nothing fits the schema: {}", cause));
  }
  if (has_any(why, {"oneOf constraints"})) {
    return invalid_schema(
        "the schema has a oneOf of which a value may fit several parts: let them differ in type or "
        "in a required constant, or use anyOf");
  }
  if (has_any(why, {"fuel", "items", "too big", "too large", "too many", "Too many"})) {
    return {ErrorCode::kTooLarge,
            fmt::format("the grammar leaves more ways open at once than can be followed: give it "
                        "fewer alternatives, optional parts or repetitions ({})",
                        why.substr(0, std::min<size_t>(why.find('\n'), 200))),
            "grammar"};
  }
  return {ErrorCode::kInvalid,
          fmt::format("the grammar cannot be used: {}", why.substr(0, kMostOfCause)), "grammar"};
}

}  // namespace tandem::grammar
