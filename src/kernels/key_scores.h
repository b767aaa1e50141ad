// A piece of a choice of keys: some tokens' scores of a run of keys.
#pragma once

#include "kernels/attention_span.h"
#include "kernels/key_choice.h"

namespace tandem::kernels {

struct KeyScores {
  const KeyChoiceArgs* args = nullptr;  // strides resolved
  const AttentionRow* row = nullptr;
  size_t token = 0;     // in q: the first of these
  size_t count = 0;     // tokens
  size_t position = 0;  // of the first
  size_t begin = 0;     // keys [begin, end); begin is a multiple of kBlockKeys and of the block
  size_t end = 0;
  float* scores = nullptr;  // [count, lists, stride]: of blocks; filled for those of these keys
  size_t stride = 0;        // room for whole vectors behind the last block

  /// Tokens that meet a block of keys together.
  static constexpr size_t most_tokens(size_t heads) {
    return heads < AttentionSpan::kQueries ? AttentionSpan::kQueries / heads : 1;
  }
  /// Queries, their scores of a block of keys, a token's weighed ones, and that block.
  static constexpr size_t scratch_floats(size_t heads, size_t dim) {
    constexpr size_t kKeys = AttentionSpan::kBlockKeys;
    return most_tokens(heads) * heads * (padded(dim) + kKeys) + kKeys + kKeys * dim;
  }
};

}  // namespace tandem::kernels
