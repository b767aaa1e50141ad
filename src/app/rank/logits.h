// The logits of every position of a token list, for comparison with other engines.
#pragma once

#include <string>
#include <vector>

#include "app/rank/options.h"
#include "base/result.h"
#include "gen/request.h"

namespace tandem::app {

/// A JSON list of token ids. Errors: kNotFound, kInvalid.
Result<std::vector<gen::TokenId>> read_tokens(const std::string& file);

/// Runs the model on all ranks, as threads of this process, in chunks of `options.chunk` tokens (0:
/// all at once) and writes [positions, vocab] float32 as tensor "logits" to `options.logits_out`.
/// Errors: of loading, running, writing.
Status write_logits(const RankOptions& options);

}  // namespace tandem::app
