// Element types in the words of format/, kernels/ and MLX.
#pragma once

#include <mlx/mlx.h>

#include "format/tensor.h"
#include "kernels/scalar_type.h"

namespace tandem::tensor {

/// Throws LoadFailure (kUnsupported) for types that weights cannot have.
kernels::ScalarType scalar_type(format::Dtype dtype);
mlx::core::Dtype mlx_dtype(format::Dtype dtype);

}  // namespace tandem::tensor
