// The two paths of attend(), each with its contract.
#pragma once

#include "kernels/rope.h"
#include "tensor/attention.h"

namespace tandem::tensor {

/// In ordinary MLX operations, row by row.
array attend_plain(Pool& pool,
                   const QueryKeyValue& x,
                   const AttentionShape& shape,
                   const Step& step,
                   const ChosenKeys* chosen);

/// Of one row whose tokens take blocks of keys, as a part of the plain path: q [tokens, heads,
/// head_dim], rotated, blocks as ChosenKeys has them, `pages` the row's → [tokens, heads *
/// head_dim]. Reads the chosen blocks alone.
array attend_blocks(const Pool& pool,
                    const array& pages,
                    const array& q,
                    const StepRow& row,
                    const AttentionShape& shape,
                    const array& blocks,
                    uint32_t block);

/// True where each group of query heads has the next KV head, as MLX's attention assumes.
bool is_regular(const AttentionShape& shape);

/// x [tokens, heads, head_dim], rotated in float32.
array rotate(const array& x, const Rope& rope, const Step& step);

/// In our CPU kernels, all rows at once, in one node. Rotates q and k in place: their buffers
/// belong to the projections whose only reader this is.
array attend_fast(Pool& pool,
                  const QueryKeyValue& x,
                  const AttentionShape& shape,
                  const Step& step,
                  const Context& context,
                  const ChosenKeys* chosen);

/// A rope of a step's tokens; the matrix is unset.
kernels::RopeArgs rope_args(const Rope& rope, const Step& step);

}  // namespace tandem::tensor
