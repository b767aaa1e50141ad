#include "text/detokenizer.h"

#include <cstdint>

namespace tandem::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// What the first bytes of a text are.
struct Character {
  enum class Kind { kWhole, kPartial, kBroken } kind;
  size_t length;  // bytes it covers
};

/// Allowed values of the second byte, which decides about overlong forms, surrogates and the end of
/// Unicode.
struct Lead {
  size_t length;
  uint8_t second_low;
  uint8_t second_high;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2 || byte > 0xF4) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0) {
    const auto low = static_cast<uint8_t>(byte == 0xE0 ? 0xA0 : 0x80);
    const auto high = static_cast<uint8_t>(byte == 0xED ? 0x9F : 0xBF);
    return {3, low, high};
  }
  const auto low = static_cast<uint8_t>(byte == 0xF0 ? 0x90 : 0x80);
  const auto high = static_cast<uint8_t>(byte == 0xF4 ? 0x8F : 0xBF);
  return {4, low, high};
}

/// Requires a text that is not empty.
Character first_character(std::string_view text) {
  const Lead lead = lead_of(static_cast<uint8_t>(text[0]));
  if (lead.length == 0) return {Character::Kind::kBroken, 1};
  for (size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {Character::Kind::kPartial, i};
    const auto byte = static_cast<uint8_t>(text[i]);
    const uint8_t low = i == 1 ? lead.second_low : 0x80;
    const uint8_t high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return {Character::Kind::kBroken, i};
  }
  return {Character::Kind::kWhole, lead.length};
}

}  // namespace

std::string Utf8Assembler::push(std::string_view bytes) {
  held_ += bytes;
  std::string text;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Character next = first_character(rest);
    if (next.kind == Character::Kind::kPartial) break;
    text += next.kind == Character::Kind::kWhole ? rest.substr(0, next.length) : kReplacement;
    rest.remove_prefix(next.length);
  }
  held_.erase(0, held_.size() - rest.size());
  return text;
}

bool Utf8Assembler::finish() {
  const bool had = !held_.empty();
  held_.clear();
  return had;
}

std::string Detokenizer::push(TokenId id) {
  std::string_view bytes = tokenizer_.bytes(id);
  if (at_start_ && !bytes.empty()) {
    at_start_ = false;
    if (bytes.front() == ' ') bytes.remove_prefix(1);
  }
  return assembler_.push(bytes);
}

}  // namespace tandem::text
