#include "dialect/json_text.h"

#include <cmath>
#include <cstdlib>

#include "dialect/input.h"

namespace tandem::dialect {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Past the digits from `at` on; `at` itself when there are none.
size_t past_digits(std::string_view text, size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

/// Past an integer at the start; 0 when there is none.
size_t past_integer(std::string_view text) {
  const size_t begin = text.starts_with('-') ? 1 : 0;
  const size_t end = past_digits(text, begin);
  if (end == begin || (text[begin] == '0' && end > begin + 1)) return 0;
  return end;
}

}  // namespace

void append_escaped(std::string& text, char byte) {
  switch (byte) {
    case '"':
      text += "\\\"";
      return;
    case '\\':
      text += "\\\\";
      return;
    case '\n':
      text += "\\n";
      return;
    case '\t':
      text += "\\t";
      return;
    case '\r':
      text += "\\r";
      return;
    default:
      break;
  }
  if (static_cast<unsigned char>(byte) >= 0x20) {
    text += byte;
    return;
  }
  constexpr const char* kDigits = "0123456789abcdef";
  text += "\\u00";
  text += kDigits[byte >> 4];
  text += kDigits[byte & 15];
}

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char byte : text) append_escaped(result, byte);
  return result + '"';
}

std::string spaced_json(const Json& value) {
  if (value.is_object()) {
    std::string text = "{";
    for (const auto& [key, inner] : value.items()) {
      if (text.size() > 1) text += ", ";
      text += json_string(key) + ": " + spaced_json(inner);
    }
    return text + '}';
  }
  if (value.is_array()) {
    std::string text = "[";
    for (const Json& inner : value) {
      if (text.size() > 1) text += ", ";
      text += spaced_json(inner);
    }
    return text + ']';
  }
  if (value.is_string()) return json_string(value.get<std::string>());
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_json_integer(std::string_view text) {
  return !text.empty() && past_integer(text) == text.size();
}

bool is_json_number(std::string_view text) {
  size_t at = past_integer(text);
  if (at == 0) return false;
  if (at < text.size() && text[at] == '.') {
    const size_t end = past_digits(text, at + 1);
    if (end == at + 1) return false;
    at = end;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const size_t end = past_digits(text, at);
    if (end == at) return false;
    at = end;
  }
  return at == text.size();
}

bool is_in_range(std::string_view number) {
  return std::isfinite(std::strtod(std::string(number).c_str(), nullptr));
}

std::string json_number(std::string_view number) {
  if (is_in_range(number)) return std::string(number);
  return number.starts_with('-') ? "-1.7976931348623157e308" : "1.7976931348623157e308";
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && is_space(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

}  // namespace tandem::dialect
