// The choice of keys that a token attends to, where it sees more than it may take.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tensor/pool.h"

namespace tandem::tensor {

struct KeyChoiceShape {
  uint32_t heads = 0;
  uint32_t dim = 0;
  uint32_t top_k = 0;
  std::shared_ptr<const Rope> rope;  // of the first dimensions; shared: by all layers
};

/// Projections of a step's tokens.
struct KeyChoiceInputs {
  array q;        // [tokens, heads * dim]
  array k;        // [tokens, dim]
  array weights;  // [tokens, heads]
};

/// What a step's tokens attend to.
struct ChosenKeys {
  uint32_t top_k = 0;
  std::optional<array> positions = {};  // fast path: [tokens, top_k], see kernels::choose_keys()
  std::vector<std::optional<array>> masks = {};  // plain path: of rows that choose, [tokens, keys]
};

/// Rotates q and k, stores k in the pool, which has one KV head and no values beside its keys, and
/// chooses by kernels/key_choice.h. Of equal scores any may be taken on the plain path.
///
/// Requires  as attend()
ChosenKeys choose_keys(Pool& pool,
                       const KeyChoiceInputs& x,
                       const KeyChoiceShape& shape,
                       const Step& step,
                       const Context& context);

}  // namespace tandem::tensor
