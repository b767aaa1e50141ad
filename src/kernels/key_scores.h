// A piece of a choice of keys: one token's scores of a run of keys.
#pragma once

#include "kernels/attention_span.h"
#include "kernels/key_choice.h"

namespace tandem::kernels {

struct KeyScores {
  const KeyChoiceArgs* args = nullptr;  // strides resolved
  const AttentionRow* row = nullptr;
  size_t token = 0;  // in q
  size_t begin = 0;  // positions [begin, end); begin is a multiple of kBlockKeys
  size_t end = 0;
  float* scores = nullptr;  // of position 0; room for whole vectors behind the last

  /// Queries, scores of heads with a block of keys, and that block.
  static constexpr size_t scratch_floats(size_t heads, size_t dim) {
    constexpr size_t kKeys = AttentionSpan::kBlockKeys;
    return heads * (padded(dim) + kKeys) + kKeys * dim;
  }
};

}  // namespace tandem::kernels
