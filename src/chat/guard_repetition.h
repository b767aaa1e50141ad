// Tells an answer that goes on and on with the same words from one that repeats itself for a
// reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::chat {

/// Watches an answer's raw text. It is stuck when its end is one span, byte for byte, over and
/// over: a span of 3 to 8 bytes at least 16 times, one to 120 bytes 10 times, one to 1200 bytes 5
/// times, and all of that over at least kLeastBytes, or inside a call kLeastCallBytes. The span has
/// a letter of some script and two different bytes: rulers, tables of numbers, padding and empty
/// cells repeat for a reason, and so do lists and blocks of code that end sooner. Not thread-safe.
class RepeatedSpan {
 public:
  static constexpr size_t kLeastBytes = 2000;
  static constexpr size_t kLeastCallBytes = 6000;
  static constexpr uint32_t kFirstToken = 48;
  static constexpr uint32_t kEveryTokens = 12;

  /// The text that one more token made certain.
  void add(std::string_view text);

  /// Looked at every kEveryTokens tokens, from kFirstToken on; false in between.
  bool is_stuck(bool is_in_call);

 private:
  std::string tail_;
  uint32_t tokens_ = 0;
};

/// Bytes of the shortest span that the text ends with, at least as often and as long as said above;
/// 0 when there is none. Linear in the text.
size_t repeated_span(std::string_view text, size_t least_bytes);

}  // namespace tandem::chat
