// Token bytes to text, a token at a time.
#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace tandem::text {

/// Turns bytes into whole UTF-8 characters. Bytes of a character that is not complete are held
/// back; bytes that can never become one come out as U+FFFD, one for each maximal broken part. The
/// text does not depend on how the bytes are cut. Not thread-safe.
class Utf8Assembler {
 public:
  /// Text that is complete now.
  std::string push(std::string_view bytes);

  /// Bytes held back.
  size_t pending() const { return held_.size(); }

  /// Forgets held bytes; true when there were any. At the end of an answer that was cut inside a
  /// character, its first bytes are not text.
  bool finish();

 private:
  std::string held_;
};

/// Decodes one answer. Not thread-safe.
class Detokenizer {
 public:
  /// The tokenizer must outlive it.
  explicit Detokenizer(const Tokenizer& tokenizer)
      : tokenizer_(tokenizer), at_start_(tokenizer.strips_leading_space()) {}

  /// Text completed by the token. Special tokens count as text here: leave out those that are not
  /// wanted.
  std::string push(TokenId id);

  /// True while bytes of an incomplete character are held back.
  bool is_inside_character() const { return assembler_.pending() > 0; }

  /// Ends the answer; see Utf8Assembler::finish().
  bool finish() { return assembler_.finish(); }

 private:
  const Tokenizer& tokenizer_;
  Utf8Assembler assembler_;
  bool at_start_;
};

}  // namespace tandem::text
