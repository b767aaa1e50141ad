// Grammars of custom tools, written in Lark, as regular expressions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tandem::chat {

/// One regular expression for the texts of a grammar in the dialect of Lark that OpenAI's custom
/// tools take: rules and terminals, | ( ) [ ] ? * + ~n ~n..m, "…" and "…"i, /…/ with the flags i,
/// s, m and x, "a".."z", aliases, priorities, %import common.X and %ignore. It stands for all of
/// them where no rule contains itself but as the first or the last part of an alternative.
///
/// Errors: kInvalid where the text is no such grammar, or has what is not offered (lookaround,
/// lazy quantifiers, %declare, templates, …), with the word and its line; kUnsupported where a rule
/// nests in itself, or where the expression would be too long.
Result<std::string> regex_of_lark(std::string_view source);

}  // namespace tandem::chat
