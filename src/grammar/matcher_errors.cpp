#include "grammar/matcher_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace tandem::grammar {
namespace {

constexpr size_t kMostOfCause = 200;  // of the library's words
constexpr std::string_view kOfSchema = "failed to compile JSON schema: ";

bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.starts_with(word); });
}

/// The library's own words, in front of which it may say where and behind which it may quote what
/// the client has sent.
std::string_view own_words(std::string_view why) {
  std::string_view line = why.substr(0, why.find('\n'));
  const size_t schema = line.find(kOfSchema);
  if (schema != std::string_view::npos) return line.substr(schema + kOfSchema.size());
  if (line.starts_with("at ")) {
    const size_t behind = line.find(": ");
    if (behind != std::string_view::npos) line.remove_prefix(behind + 2);
  }
  return line;
}

/// What stands between the words, with which the text begins, and one of the letters, or its end.
std::string_view part(std::string_view text, std::string_view from, std::string_view to) {
  if (!text.starts_with(from)) return {};
  text.remove_prefix(from.size());
  return text.substr(0, text.find_first_of(to));
}

/// What a line of its own says about a pattern, behind the pattern.
std::string_view pattern_error(std::string_view why) {
  constexpr std::string_view kMark = "\nerror: ";
  const size_t at = why.rfind(kMark);
  if (why.find("regex parse error") == std::string_view::npos || at == std::string_view::npos) {
    return {};
  }
  const std::string_view rest = why.substr(at + kMark.size());
  return rest.substr(0, rest.find('\n'));
}

Error invalid_grammar(std::string message) {
  return {ErrorCode::kInvalid, std::move(message), "grammar"};
}

/// Not in the middle of a letter.
std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return std::string(text.substr(0, most));
}

/// Words that the library begins with where a bound of its work is met.
bool is_over_bound(std::string_view own) {
  return begins_with_any(own, {"lexer error: too many", "parser error: Too many items",
                               "Too many items", "Parser Error: Current row has", "Current row has",
                               "fuel exhausted", "lexer precomputation failed", "DNF too large",
                               "initial lexer configuration", "grammar size", "schema too large"});
}

}  // namespace

Error matcher_error(std::string_view why) {
  const std::string_view own = own_words(why);
  if (own.starts_with("NoExtensionBias")) {
    return invalid_grammar(
        "no text fits the grammar: a rule, a schema or a pattern of it must allow something that "
        "has an end");
  }
  if (own.starts_with("endless readings")) {
    return invalid_grammar(
        "the grammar reads the same text in endlessly many ways, since a part that may be empty is "
        "repeated (as in (x*)*), or a rule may be made of itself alone: let what is repeated never "
        "be empty");
  }
  if (const auto keys = part(own, "Unimplemented keys: [", "]"); !keys.empty()) {
    return invalid_grammar(
        fmt::format("the schema has {}, which no grammar can hold an answer to: leave it out",
                    shortened(keys, kMostOfCause)));
  }
  if (const auto cause = part(own, "Unsatisfiable schema: ", "\n"); !cause.empty()) {
    return invalid_grammar(
        fmt::format("nothing fits the schema: {}", shortened(cause, kMostOfCause)));
  }
  if (own.starts_with("oneOf constraints")) {
    return invalid_grammar(
        "the schema has a oneOf of which a value may fit several parts: let them differ in type or "
        "in a required constant, or use anyOf");
  }
  if (own.starts_with("Unable to determine if regex is empty")) {
    return invalid_grammar(
        "whether any string can fit all of pattern, format and lengths of the schema together is "
        "too costly to find out: give a string fewer of them, or simpler ones");
  }
  if (is_over_bound(own)) {
    return {ErrorCode::kTooLarge,
            fmt::format("the grammar leaves more ways open at once than can be followed: give it "
                        "fewer alternatives, optional parts or repetitions ({})",
                        shortened(own, kMostOfCause)),
            "grammar"};
  }
  if (const auto cause = pattern_error(why); !cause.empty()) {
    return invalid_grammar(
        fmt::format("a pattern of the grammar is not one: {}", shortened(cause, kMostOfCause)));
  }
  const bool is_schema = why.substr(0, why.find('\n')).find(kOfSchema) != std::string_view::npos;
  return invalid_grammar(
      fmt::format("the {} cannot be used: {}", is_schema ? "schema" : "grammar",
                  shortened(is_schema ? own : why.substr(0, why.find('\n')), kMostOfCause)));
}

}  // namespace tandem::grammar
