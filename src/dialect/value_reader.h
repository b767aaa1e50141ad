// Reads values as models write them (JSON, Python literals, Gemma's own) and writes them as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dialect/input.h"

namespace tandem::dialect {

/// How a family's values differ from JSON. Everywhere: Python's words and single quotes, commas too
/// many or too few, raw line breaks in strings, and backslashes that escape nothing are taken too;
/// a word that is no JSON becomes a string, so that none of its characters is lost ("007").
struct ValueStyle {
  bool bare_keys = false;   // {key: …}
  bool bare_words = false;  // words may hold spaces, and end at a comma or a bracket
  bool python = false;      // Python's escapes, tuples, triple quotes
  std::string quote = {};   // opens and closes strings in which nothing is escaped
};

inline const ValueStyle kJsonStyle = {};
inline const ValueStyle kPythonStyle = {.python = true};

/// What it writes is valid JSON in every case: what the answer or a mistake cuts off is closed.
class ValueReader {
 public:
  ValueReader(Input& in, std::string& out, const ValueStyle& style)
      : in_(in), out_(out), style_(style) {}

  /// One value, which must be there. False when it was cut off or is malformed.
  Task<bool> value(int depth = 0);

  /// An object, whose '{' was read.
  Task<bool> object(int depth = 0);

  /// The key of a member with its colon, as JSON text into `key`. False when there is none.
  Task<bool> key(std::string& key);

 private:
  bool begins_value(int byte) const;
  Task<bool> array(int close, int depth);
  enum class Quoted : uint8_t { kNone, kWhole, kCut };
  Task<Quoted> string(std::string& to);
  Task<bool> quoted_string(char quote, std::string& to);
  Task<bool> delimited_string(std::string& to);
  Task<bool> escape(std::string& to);
  Task<bool> python_escape(char letter, std::string& to);
  Task<bool> code_units(std::string& to);
  Task<bool> hex(int digits, uint32_t& code);
  Task<bool> word(std::string& to);

  Input& in_;
  std::string& out_;
  const ValueStyle& style_;
};

/// True when an object with a key, or an empty one, comes next. Reads nothing.
Task<bool> looks_like_object(Input& in, const ValueStyle& style);

/// The text as one JSON value, if it is one in that style, with white space around it; else empty.
std::string read_whole(std::string_view text, const ValueStyle& style);

}  // namespace tandem::dialect
