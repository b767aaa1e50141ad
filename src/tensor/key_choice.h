// The choice of keys that a token attends to, where it sees more than it may take.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tensor/kept_choices.h"
#include "tensor/pool.h"

namespace tandem::tensor {

/// As kernels::KeyChoiceArgs.
struct KeyChoiceShape {
  uint32_t heads = 0;
  uint32_t dim = 0;
  uint32_t block = 1;
  uint32_t top_k = 0;
  uint32_t first_blocks = 0;
  uint32_t last_blocks = 0;
  std::shared_ptr<const Rope> rope;  // of the first dimensions; shared: by all layers
};

/// Projections of a step's tokens.
struct KeyChoiceInputs {
  array q;                            // [tokens, heads * dim]
  array k;                            // [tokens, dim]
  std::optional<array> weights = {};  // [tokens, heads]; absent: each head chooses by itself
};

/// What a step's tokens attend to: keys, the same for all heads, or for each KV head blocks of
/// them.
struct ChosenKeys {
  uint32_t block = 1;  // positions of one; 1: single keys
  uint32_t top_k = 0;
  /// Fast path: [tokens, top_k] or [tokens, KV heads * top_k], see kernels::choose_keys().
  std::optional<array> chosen = {};
  /// Plain path, of rows that choose: single keys as [tokens, keys] bool, or blocks as [tokens, KV
  /// heads, top_k] uint32, in any order, among which those of a token with fewer may be later ones.
  std::vector<std::optional<array>> of_rows = {};

  bool has_blocks() const { return block > 1; }
};

/// Rotates q and k, stores k in the pool, which has one KV head and keys alone, and chooses by
/// kernels/key_choice.h. Of equal scores any may be taken on the plain path. Blocks are chosen
/// without weights, single keys with them. Rows that reuse choices of blocks take them from `kept`,
/// and keep in it what later rows may take.
///
/// Requires  as attend(); `kept` to live as long as the graph, and not null where a row reuses
ChosenKeys choose_keys(Pool& pool,
                       const KeyChoiceInputs& x,
                       const KeyChoiceShape& shape,
                       const Step& step,
                       const Context& context,
                       KeptChoices* kept = nullptr);

}  // namespace tandem::tensor
