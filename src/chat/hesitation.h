// Words with which a model goes back on what it thought: "Wait", "Hmm".
#pragma once

#include <vector>

#include "text/tokenizer.h"

namespace tandem::chat {

/// The tokens that begin such words in this vocabulary, sorted: those that are a whole word but for
/// white space before it, and of words that are several tokens the first one where it tells the
/// word by itself ("Altern" does, "H" does not). Empty when there are none.
std::vector<text::TokenId> hesitation_tokens(const text::Tokenizer& tokenizer);

}  // namespace tandem::chat
