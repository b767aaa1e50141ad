#include "tensor/dtype.h"

#include "tensor/weights.h"

namespace tandem::tensor {

kernels::ScalarType scalar_type(format::Dtype dtype) {
  switch (dtype) {
    case format::Dtype::kF32:
      return kernels::ScalarType::kF32;
    case format::Dtype::kF16:
      return kernels::ScalarType::kF16;
    case format::Dtype::kBF16:
      return kernels::ScalarType::kBf16;
    default:
      throw LoadFailure({ErrorCode::kUnsupported,
                         fmt::format("weights of type {} are not supported", name(dtype))});
  }
}

mlx::core::Dtype mlx_dtype(format::Dtype dtype) {
  switch (dtype) {
    case format::Dtype::kF32:
      return mlx::core::float32;
    case format::Dtype::kF16:
      return mlx::core::float16;
    case format::Dtype::kBF16:
      return mlx::core::bfloat16;
    case format::Dtype::kU32:
      return mlx::core::uint32;
    case format::Dtype::kU8:
      return mlx::core::uint8;
    default:
      throw LoadFailure({ErrorCode::kUnsupported,
                         fmt::format("weights of type {} are not supported", name(dtype))});
  }
}

}  // namespace tandem::tensor
