#include "dialect/value_reader.h"

#include "dialect/json_text.h"

namespace tandem::dialect {
namespace {

constexpr int kDeepest = 64;
constexpr uint32_t kReplacement = 0xFFFD;

void append_utf8(std::string& text, uint32_t code) {
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = kReplacement;
  if (code < 0x80) {
    append_escaped(text, static_cast<char>(code));
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 63));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | (code >> 12));
    text += static_cast<char>(0x80 | ((code >> 6) & 63));
    text += static_cast<char>(0x80 | (code & 63));
  } else {
    text += static_cast<char>(0xF0 | (code >> 18));
    text += static_cast<char>(0x80 | ((code >> 12) & 63));
    text += static_cast<char>(0x80 | ((code >> 6) & 63));
    text += static_cast<char>(0x80 | (code & 63));
  }
}

int hex_digit(int c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// What a word without quotes stands for: a literal, a number, or a string.
std::string json_of_word(std::string_view word) {
  if (word == "true" || word == "True") return "true";
  if (word == "false" || word == "False") return "false";
  if (word == "null" || word == "None") return "null";
  return is_json_number(word) ? json_number(word) : json_string(word);
}

bool ends_word(int c) {
  return c == Input::kEnd || c == ',' || c == '}' || c == ']' || c == ')' || c == '<' || c == '\n';
}

}  // namespace

Task<bool> ValueReader::value(int depth) {
  co_await skip_space(in_);
  const int c = co_await in_.peek();
  if (depth > kDeepest) {
    out_ += "null";
    co_return false;
  }
  if (c == '{') {
    in_.skip();
    co_return co_await object(depth);
  }
  if (c == '[' || (style_.python && c == '(')) {
    in_.skip();
    co_return co_await array(c == '[' ? ']' : ')', depth);
  }
  const Quoted text = co_await string(out_);
  if (text == Quoted::kCut) out_ += '"';
  if (text != Quoted::kNone) co_return text == Quoted::kWhole;
  co_return co_await word(out_);
}

Task<bool> ValueReader::object(int depth) {
  out_ += '{';
  bool ok = true;
  bool is_first = true;
  while (true) {
    co_await skip_space(in_);
    const int c = co_await in_.peek();
    if (c == ',' || c == '}') {
      in_.skip();
      if (c == '}') break;
      continue;
    }
    std::string name;
    ok = co_await key(name);
    if (!ok) break;
    co_await skip_space(in_);
    const int next = co_await in_.peek();
    if (!begins_value(next)) {
      ok = false;
      break;
    }
    out_ += (is_first ? "" : ", ") + name + ": ";
    is_first = false;
    ok = co_await value(depth + 1);
    if (!ok) break;
  }
  out_ += '}';
  co_return ok;
}

bool ValueReader::begins_value(int byte) const {
  const bool is_quote =
      !style_.quote.empty() && byte == static_cast<unsigned char>(style_.quote[0]);
  return is_quote || !ends_word(byte);
}

Task<bool> ValueReader::array(int close, int depth) {
  out_ += '[';
  bool ok = true;
  bool is_first = true;
  while (true) {
    co_await skip_space(in_);
    const int c = co_await in_.peek();
    if (c == ',' || c == close) {
      in_.skip();
      if (c == close) break;
      continue;
    }
    if (!begins_value(c)) {
      ok = false;
      break;
    }
    if (!is_first) out_ += ", ";
    is_first = false;
    ok = co_await value(depth + 1);
    if (!ok) break;
  }
  out_ += ']';
  co_return ok;
}

Task<bool> ValueReader::key(std::string& key) {
  key.clear();
  co_await skip_space(in_);
  const Quoted text = co_await string(key);
  if (text == Quoted::kCut) co_return false;
  if (text == Quoted::kNone) {
    if (!style_.bare_keys) co_return false;
    const std::string word = co_await read_word(in_, ":");
    if (word.empty()) co_return false;
    key = json_string(word);
  }
  co_await skip_space(in_);
  co_return co_await match(in_, ":");
}

/// kNone, with nothing read, when no string begins here; kCut: the closing quote lacks in `to`.
Task<ValueReader::Quoted> ValueReader::string(std::string& to) {
  if (!style_.quote.empty()) {
    const bool is_delimited = co_await match(in_, style_.quote);
    if (is_delimited) {
      const bool whole = co_await delimited_string(to);
      co_return whole ? Quoted::kWhole : Quoted::kCut;
    }
  }
  const int c = co_await in_.peek();
  if (c != '"' && c != '\'') co_return Quoted::kNone;
  in_.skip();
  const bool whole = co_await quoted_string(static_cast<char>(c), to);
  co_return whole ? Quoted::kWhole : Quoted::kCut;
}

Task<bool> ValueReader::delimited_string(std::string& to) {
  to += '"';
  while (true) {
    const int c = co_await in_.peek();
    if (c == Input::kEnd) co_return false;
    if (c == static_cast<unsigned char>(style_.quote[0])) {
      const bool is_over = co_await match(in_, style_.quote);
      if (is_over) break;
      const bool is_cut = co_await is_cut_inside(in_, style_.quote);
      if (is_cut) co_return false;
    }
    in_.skip();
    append_escaped(to, static_cast<char>(c));
  }
  to += '"';
  co_return true;
}

Task<bool> ValueReader::quoted_string(char quote, std::string& to) {
  std::string close(1, quote);
  if (style_.python) {
    const bool is_triple = co_await match(in_, std::string_view(quote == '"' ? "\"\"" : "''"));
    if (is_triple) close.append(2, quote);
  }
  to += '"';
  while (true) {
    const int c = co_await in_.peek();
    if (c == Input::kEnd) co_return false;
    if (c == quote) {
      const bool is_over = co_await match(in_, close);
      if (is_over) break;
      const bool is_cut = co_await is_cut_inside(in_, close);
      if (is_cut) co_return false;
    }
    in_.skip();
    if (c == '\\') {
      co_await escape(to);
    } else {
      append_escaped(to, static_cast<char>(c));
    }
  }
  to += '"';
  co_return true;
}

/// What follows a backslash. At the answer's end nothing is written.
Task<bool> ValueReader::escape(std::string& to) {
  const int c = co_await in_.peek();
  if (c == Input::kEnd) co_return false;
  in_.skip();
  switch (c) {
    case '"':
    case '\'':
    case '\\':
    case '/':
      append_escaped(to, static_cast<char>(c));
      co_return true;
    case 'n':
      to += "\\n";
      co_return true;
    case 't':
      to += "\\t";
      co_return true;
    case 'r':
      to += "\\r";
      co_return true;
    case 'b':
      to += "\\b";
      co_return true;
    case 'f':
      to += "\\f";
      co_return true;
    case 'u':
      co_return co_await code_units(to);
    default:
      break;
  }
  if (style_.python) {
    const bool taken = co_await python_escape(static_cast<char>(c), to);
    if (taken) co_return true;
  }
  to += "\\\\";
  append_escaped(to, static_cast<char>(c));
  co_return true;
}

Task<bool> ValueReader::python_escape(char letter, std::string& to) {
  if (letter == '\n') co_return true;
  if (letter == 'x' || letter == 'U') {
    uint32_t code = 0;
    const bool ok = co_await hex(letter == 'x' ? 2 : 8, code);
    if (ok) append_utf8(to, code);
    co_return ok;
  }
  if (letter == 'a' || letter == 'v' || letter == '0') {
    append_escaped(to, letter == 'a' ? '\a' : letter == 'v' ? '\v' : '\0');
    co_return true;
  }
  co_return false;
}

/// \uXXXX, its 'u' read; two of them when they are a pair of surrogates.
Task<bool> ValueReader::code_units(std::string& to) {
  uint32_t code = 0;
  const bool ok = co_await hex(4, code);
  if (!ok) {
    if (!in_.saw_end()) to += "\\\\u";
    co_return false;
  }
  if (code >= 0xD800 && code < 0xDC00) {
    uint32_t low = 0;
    const Input::Mark before(in_);
    bool is_pair = co_await match(in_, "\\u");
    if (is_pair) is_pair = co_await hex(4, low);
    if (is_pair && low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else {
      before.go_back();
    }
  }
  append_utf8(to, code);
  co_return true;
}

Task<bool> ValueReader::hex(int digits, uint32_t& code) {
  const Input::Mark start(in_);
  code = 0;
  for (int i = 0; i < digits; ++i) {
    const int c = co_await in_.peek();
    const int digit = hex_digit(c);
    if (digit < 0) {
      if (c != Input::kEnd) start.go_back();
      co_return false;
    }
    in_.skip();
    code = code * 16 + static_cast<uint32_t>(digit);
  }
  co_return true;
}

Task<bool> ValueReader::word(std::string& to) {
  std::string text;
  while (true) {
    const int c = co_await in_.peek();
    if (ends_word(c) || (!style_.bare_words && (is_space(c) || c == ':' || c == '"'))) break;
    text += static_cast<char>(c);
    in_.skip();
  }
  const std::string_view word = trimmed(text);
  to += word.empty() ? "null" : json_of_word(word);
  co_return !word.empty() && !in_.saw_end();
}

Task<bool> looks_like_object(Input& in, const ValueStyle& style) {
  const Input::Mark here(in);
  std::string key;
  ValueReader reader(in, key, style);
  bool ok = co_await match(in, "{");
  if (ok) co_await skip_space(in);
  const int c = co_await in.peek();
  if (ok && style.bare_keys && c != '}') ok = co_await reader.key(key);
  here.go_back();
  co_return ok && (style.bare_keys || c == '"' || c == '\'' || c == '}');
}

std::string read_whole(std::string_view text, const ValueStyle& style) {
  Input in;
  in.append(trimmed(text));
  std::string json;
  in.append(",");  // so that a word at the end is whole
  in.end();
  ValueReader reader(in, json, style);
  const Task<bool> task = reader.value();
  if (!task.done() || !task.await_resume()) return {};
  const Task<bool> rest = match(in, ",");
  return rest.await_resume() && in.peek().await_resume() == Input::kEnd ? json : std::string();
}

}  // namespace tandem::dialect
