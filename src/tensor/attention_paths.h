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
