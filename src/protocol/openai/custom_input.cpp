#include "protocol/openai/custom_input.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "chat/request.h"
#include "protocol/json.h"
#include "protocol/message_rules.h"

namespace tandem::protocol::openai {
namespace {

/// Takes white space and then `word` off the front, if it is there.
bool take(std::string_view& text, std::string_view word) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || !text.substr(begin).starts_with(word)) return false;
  text.remove_prefix(begin + word.size());
  return true;
}

/// Behind `{"input": "`; nothing where the object begins otherwise, or not so far yet.
std::optional<size_t> text_start(std::string_view arguments) {
  static const std::string kName = literal(chat::kTextInput);
  std::string_view rest = arguments;
  for (const std::string_view word : {std::string_view("{"), std::string_view(kName),
                                      std::string_view(":"), std::string_view("\"")}) {
    if (!take(rest, word)) return std::nullopt;
  }
  return arguments.size() - rest.size();
}

/// One character, or an escape of it.
struct Character {
  std::string bytes;
  size_t length = 0;  // in the JSON text
};

std::optional<uint32_t> hex_unit(std::string_view escape) {
  if (escape.size() < 6 || !escape.starts_with("\\u")) return std::nullopt;
  uint32_t unit = 0;
  std::from_chars(escape.data() + 2, escape.data() + 6, unit, 16);
  return unit;
}

std::string utf8(uint32_t code) {
  const auto byte = [](uint32_t bits) { return static_cast<char>(bits); };
  const auto more = [&](uint32_t shift) { return byte(0x80U | ((code >> shift) & 0x3FU)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0U | (code >> 6)), more(0)};
  if (code < 0x10000) return {byte(0xE0U | (code >> 12)), more(6), more(0)};
  return {byte(0xF0U | (code >> 18)), more(12), more(6), more(0)};
}

/// \uXXXX, or two that are a pair of surrogates; half of a pair is U+FFFD. Nothing: more is needed.
std::optional<Character> read_unit(std::string_view escape) {
  const auto unit = hex_unit(escape);
  if (!unit) return std::nullopt;
  const bool is_half = *unit >= 0xD800 && *unit < 0xE000;
  if (!is_half) return Character{utf8(*unit), 6};
  const Character broken{"\xEF\xBF\xBD", 6};
  const std::string_view next = escape.substr(6);
  if (*unit >= 0xDC00 || (!next.empty() && next[0] != '\\')) return broken;
  if (next.size() >= 2 && next[1] != 'u') return broken;
  const auto low = hex_unit(next);
  if (!low) return std::nullopt;
  if (*low < 0xDC00 || *low >= 0xE000) return broken;
  return Character{utf8(0x10000 + ((*unit - 0xD800) << 10) + (*low - 0xDC00)), 12};
}

/// What begins with a backslash. Nothing: more is needed.
std::optional<Character> read_escape(std::string_view escape) {
  if (escape.size() < 2) return std::nullopt;
  static constexpr std::string_view kLetters = "bfnrt";
  static constexpr std::string_view kMeant = "\b\f\n\r\t";
  if (escape[1] == 'u') return read_unit(escape);
  const size_t letter = kLetters.find(escape[1]);
  return Character{std::string(1, letter == std::string_view::npos ? escape[1] : kMeant[letter]),
                   2};
}

/// Of arguments that do not begin with their text.
std::string text_of(std::string arguments) {
  const Json parsed = Json::parse(arguments, nullptr, false);
  if (is_blank(arguments) || (parsed.is_object() && parsed.empty())) return {};
  if (!parsed.is_object()) return arguments;
  const auto input = parsed.find(chat::kTextInput);
  const bool is_text = input != parsed.end() && input->is_string();
  return is_text ? input->get<std::string>() : std::move(arguments);
}

}  // namespace

std::string CustomInput::feed(std::string_view json) {
  if (state_ == State::kDone) return {};
  held_ += json;
  if (state_ == State::kHead) {
    const auto begin = text_start(held_);
    if (!begin) return {};
    held_.erase(0, *begin);
    state_ = State::kText;
  }
  return text_so_far();
}

std::string CustomInput::text_so_far() {
  std::string out;
  size_t at = 0;
  while (true) {
    const size_t next = std::min(held_.find_first_of("\"\\", at), held_.size());
    out.append(held_, at, next - at);
    at = next;
    if (at == held_.size()) break;
    if (held_[at] == '"') {
      state_ = State::kDone;
      break;
    }
    const auto escape = read_escape(std::string_view(held_).substr(at));
    if (!escape) break;
    out += escape->bytes;
    at += escape->length;
  }
  held_.erase(0, at);
  return out;
}

std::string CustomInput::end() {
  const bool is_head = state_ == State::kHead;
  state_ = State::kDone;
  return is_head ? text_of(std::exchange(held_, {})) : std::string();
}

std::string custom_input(std::string_view arguments) {
  CustomInput reader;
  std::string text = reader.feed(arguments);
  return text += reader.end();
}

}  // namespace tandem::protocol::openai
