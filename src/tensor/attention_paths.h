// The two paths of attend(), each with its contract.
#pragma once

#include "tensor/attention.h"

namespace tandem::tensor {

/// In ordinary MLX operations, row by row.
array attend_plain(Pool& pool,
                   const QueryKeyValue& x,
                   const AttentionShape& shape,
                   const Step& step);

/// In our CPU kernels, all rows at once, in one node. Rotates q and k in place: their buffers
/// belong to the projections whose only reader this is.
array attend_fast(Pool& pool,
                  const QueryKeyValue& x,
                  const AttentionShape& shape,
                  const Step& step,
                  const Context& context);

}  // namespace tandem::tensor
