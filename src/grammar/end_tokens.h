// Tokens of a model that end its answers, in grammars that clients write.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "text/tokenizer.h"

namespace tandem::grammar {

/// Whether a grammar in Lark has none of the tokens that end answers, by name (<|end|>) or by
/// number (<[17]>, <[3-9,17]>, <[^3]>, <[*]>): drawn, such a token would end the answer where the
/// grammar goes on. Error: kInvalid, with what the grammar has.
Status check_end_tokens(std::string_view lark,
                        const text::Tokenizer& tokenizer,
                        std::span<const text::TokenId> eos);

}  // namespace tandem::grammar
