// Grammars in Lark, read: what their rules are made of.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tandem::chat {

/// A part of a rule.
struct LarkNode {
  enum class Kind : uint8_t { kPattern, kName, kSequence, kChoice, kRepeat };

  Kind kind = Kind::kSequence;
  std::string text = {};  // a pattern, a name, or the count of a repetition
  std::vector<LarkNode> parts = {};
  int line = 1;
};

struct LarkGrammar {
  std::map<std::string, LarkNode> rules = {};  // and terminals, and what is imported
  std::vector<LarkNode> ignored = {};
};

/// The rules of a grammar, its patterns as regular expressions. Errors: kInvalid where the text is
/// no grammar, or has what is not offered, with the word and its line.
Result<LarkGrammar> read_lark(std::string_view source);

}  // namespace tandem::chat
