// Which keys a token attends to, by scores that are cheaper than attention: one by one (DeepSeek
// V3.2's lightning indexer), or in blocks and for each KV head others (MiniMax M3's index heads).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/attention.h"
#include "kernels/pool.h"
#include "kernels/scalar_type.h"

namespace tandem::kernels {

struct KeyChoiceArgs {
  const float* q = nullptr;        // [tokens, heads, dim]
  const float* weights = nullptr;  // [tokens, heads]; null: each head chooses by itself
  size_t q_stride = 0;             // floats from token to token; 0 means heads * dim
  size_t weights_stride = 0;       // the same; 0 means heads
  size_t heads = 0;
  size_t dim = 0;
  const void* k_pool = nullptr;           // [pages, dim, page_tokens] of kv_type
  ScalarType kv_type = ScalarType::kF32;  // or kF16
  size_t page_tokens = 0;
  std::span<const AttentionRow> rows = {};  // whose keys are in the pool already
  size_t block = 1;                         // positions that are chosen together
  size_t top_k = 0;                         // blocks that are
  size_t first_blocks = 0;                  // so many are chosen whatever their score,
  size_t last_blocks = 0;                   // and so many that end with the token's own
  uint32_t* chosen = nullptr;               // [tokens, lists(), top_k]

  /// Choices that a token makes.
  [[gnu::always_inline]] size_t lists() const { return weights == nullptr ? heads : 1; }
};

/// Block i holds positions [i * block, (i + 1) * block). Of each token that sees more than top_k
/// blocks, the top_k with the greatest scores, of equal ones the earlier, ascending; what other
/// tokens have in `chosen` stays as it is. A block's score is the greatest of its keys that the
/// token sees, and a key's is
///   sum over heads of weight * max(q . k, 0), or, without weights, the head's q . k;
/// NaN counts as the least. A token's choice depends on nothing but its position, q, weights and
/// keys. Scores are held for so many tokens at once that they stay within 16 MB, but for few tokens
/// over long contexts. Uses the pool's scratch. Requires first_blocks + last_blocks <= top_k.
void choose_keys(WorkerPool& pool, const KeyChoiceArgs& args);

}  // namespace tandem::kernels
