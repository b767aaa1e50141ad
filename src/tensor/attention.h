// Causal attention of a ragged step over paged keys and values.
#pragma once

#include <memory>

#include "tensor/pool.h"

namespace tandem::tensor {

/// One rank's share of an attention layer.
struct AttentionShape {
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  std::vector<uint32_t> kv_of_head;  // [heads]: any map, so that cuts inside a group work
  float scale = 1;                   // of q k
  uint32_t window = 0;               // positions a token sees, itself included; 0: all
  std::shared_ptr<const Rope> rope;  // shared: by all layers
};

/// Rotates q and k, stores k and v in the pool and attends to everything that each token may see.
///
/// Shapes    q [tokens, heads * head_dim], k and v [tokens, kv_heads * head_dim]; result as q
/// Requires  the pool's order to be threaded through every use of it; the step to outlive the
/// evaluation
array attend(Pool& pool,
             const array& q,
             const array& k,
             const array& v,
             const AttentionShape& shape,
             const Step& step,
             const Context& context);

}  // namespace tandem::tensor
