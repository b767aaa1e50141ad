// How a dialect writes calls: the text in front of, between and behind them, from which come both
// the exact rendering of a call and the grammar of forced calls.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "dialect/tools.h"

namespace tandem::dialect {

struct Call {
  std::string name;
  std::string id = {};  // empty: as the dialect makes them
  Json arguments = Json::object();
};

/// How values are spelled.
enum class Spelling : uint8_t {
  kJson,
  kText,    // strings as they are, others as JSON
  kCdata,   // the same, but strings that could be taken for tags are in <![CDATA[…]]>
  kGemma,   // {key:value}, strings between `quote`
  kPython,  // True, None, …
  kNested,  // elements between tags that `quote` stands in front of
};

/// In `call`: $name, $id, $arguments or $parameters. In `parameter`: $key, $value, and $type or
/// $string for the type of the value.
struct Layout {
  std::string before = {};
  std::string call = {};
  std::string call_too = {};  // as `call`: another way in which models write it, for grammars
  std::string between = {};
  std::string after = {};
  std::string parameter = {};
  std::string between_parameters = {};
  std::string id = {};          // of a call without its own: $name, $index; empty: it must have one
  std::string id_pattern = {};  // as a regular expression, for what is not $name
  Spelling spelling = Spelling::kJson;
  std::string quote = {};
  bool sorts_keys = false;
  std::string in_prompt = {};        // begins `call`, but stands in the prompt
  std::string at_end = {};           // ends `call`: an end-of-text token
  std::string mark_after_text = {};  // in front of calls that do not begin the answer
  std::string thought = {};  // thinking and text, as $text, where an answer is made of messages;
  std::string prose = {};    // empty: the model's own markers, and text as it is
};

/// The calls as the model's own template writes them.
std::string render(const Layout& layout, std::span<const Call> calls);

/// One value.
std::string spell(const Layout& layout, const Json& value);

/// Calls `piece(text)` for text, and `field(name)` for each $name, in order.
template <class Piece, class Field>
void walk(std::string_view text, const Piece& piece, const Field& field) {
  while (!text.empty()) {
    const size_t dollar = text.find('$');
    if (dollar > 0) piece(text.substr(0, dollar));
    if (dollar == std::string_view::npos) return;
    size_t end = dollar + 1;
    while (end < text.size() && text[end] >= 'a' && text[end] <= 'z') ++end;
    field(text.substr(dollar + 1, end - dollar - 1));
    text.remove_prefix(end);
  }
}

}  // namespace tandem::dialect
