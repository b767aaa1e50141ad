// The words of a grammar in Lark.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tandem::chat {

struct LarkToken {
  /// kMark is one of : | ( ) [ ] { } ? * + ~ , . -> .. = and so on, as `text` says; kDirective is
  /// what follows a %; kEnd is the last one.
  enum class Kind : uint8_t { kName, kString, kRegex, kNumber, kMark, kDirective, kLine, kEnd };

  Kind kind = Kind::kEnd;
  std::string text = {};   // of a string, what it stands for; of a regex, its pattern
  std::string flags = {};  // of a string or regex
  int line = 1;            // from 1

  bool is(std::string_view mark) const { return kind == Kind::kMark && text == mark; }
};

/// An error about a place of the grammar: kInvalid.
Error lark_error(int line, const std::string& message);

/// Comments are left out. Errors: kInvalid with the line.
Result<std::vector<LarkToken>> lark_tokens(std::string_view source);

}  // namespace tandem::chat
