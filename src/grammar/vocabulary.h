// What grammars are made over: a model's tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace tandem::grammar {

struct Vocabulary {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::vector<text::TokenId> eos;  // end an answer; at least one
  uint32_t logits = 0;             // entries of a logits row, at least the tokenizer's size
};

/// Called once, on a thread of the compiler; may read files.
using LoadVocabulary = std::function<Result<Vocabulary>()>;

}  // namespace tandem::grammar
