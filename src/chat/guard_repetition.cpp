#include "chat/guard_repetition.h"

#include <algorithm>
#include <vector>

namespace tandem::chat {
namespace {

constexpr size_t kWindow = 8192;  // bytes looked back on
constexpr size_t kShortestSpan = 3;
constexpr size_t kLongestSpan = 1200;

/// Copies that a span of so many bytes needs.
size_t least_copies(size_t span) {
  if (span <= 8) return 16;
  return span <= 120 ? 10 : 5;
}

struct Range {
  uint32_t first;
  uint32_t last;
};

/// Beyond ASCII: what is no letter, as far as models repeat it. Punctuation, arrows, mathematics,
/// boxes, dingbats, variation selectors, full-width digits, private use, emoji.
constexpr Range kNoLetters[] = {
    {0x80, 0xA9},     {0xAB, 0xB4},     {0xB6, 0xB9},      {0xBB, 0xBF},     {0xD7, 0xD7},
    {0xF7, 0xF7},     {0x2000, 0x2BFF}, {0x3000, 0x303F},  {0xE000, 0xF8FF}, {0xFE00, 0xFE4F},
    {0xFF00, 0xFF20}, {0xFFFD, 0xFFFD}, {0x1F000, 0x1FAFF}};

bool is_letter(uint32_t character) {
  if (character < 0x80) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z');
  }
  return std::ranges::none_of(kNoLetters, [&](const Range& range) {
    return character >= range.first && character <= range.last;
  });
}

/// The span may begin inside a character: what is left of that is passed over.
bool has_letter(std::string_view span) {
  for (size_t i = 0; i < span.size();) {
    const auto lead = static_cast<unsigned char>(span[i]);
    const size_t size = lead < 0x80 ? 1 : lead < 0xC0 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (size == 0 || i + size > span.size()) {
      ++i;
      continue;
    }
    uint32_t character = size == 1 ? lead : lead & (0x7FU >> size);
    for (size_t k = 1; k < size; ++k) {
      character = (character << 6) | (static_cast<unsigned char>(span[i + k]) & 0x3FU);
    }
    if (is_letter(character)) return true;
    i += size;
  }
  return false;
}

bool is_meant(std::string_view span) {
  const bool varies = span.find_first_not_of(span[0]) != std::string_view::npos;
  // Turned once, so that a character that the span's ends cut is whole.
  return varies && has_letter(std::string(span) + std::string(span));
}

/// For each distance d: for how many bytes the text's end equals what stands d bytes before it.
/// (The Z function of the text read backwards.)
std::vector<size_t> matches_before(std::string_view text) {
  const size_t size = text.size();
  const auto at = [&](size_t i) { return text[size - 1 - i]; };
  std::vector<size_t> match(size, 0);
  size_t left = 0;
  size_t right = 0;
  for (size_t i = 1; i < size; ++i) {
    if (i < right) match[i] = std::min(right - i, match[i - left]);
    while (i + match[i] < size && at(match[i]) == at(i + match[i])) ++match[i];
    if (i + match[i] > right) {
      left = i;
      right = i + match[i];
    }
  }
  return match;
}

}  // namespace

size_t repeated_span(std::string_view text, size_t least_bytes) {
  const std::vector<size_t> match = matches_before(text);
  for (size_t span = kShortestSpan; span <= std::min(kLongestSpan, text.size() / 2); ++span) {
    const size_t covered = span + match[span];
    if (covered < std::max(span * least_copies(span), least_bytes)) continue;
    if (is_meant(text.substr(text.size() - span))) return span;
  }
  return 0;
}

void RepeatedSpan::add(std::string_view text) {
  ++tokens_;
  tail_ += text;
  if (tail_.size() > 2 * kWindow) tail_.erase(0, tail_.size() - kWindow);
}

bool RepeatedSpan::is_stuck(bool is_in_call) {
  if (tokens_ < kFirstToken || tokens_ % kEveryTokens != 0) return false;
  std::string_view text(tail_);
  if (text.size() > kWindow) text.remove_prefix(text.size() - kWindow);
  return repeated_span(text, is_in_call ? kLeastCallBytes : kLeastBytes) > 0;
}

}  // namespace tandem::chat
