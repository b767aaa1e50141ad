// Products with quantized matrices by MLX's operations.
#pragma once

#include <optional>

#include "format/tensor.h"
#include "tensor/cpu_op.h"

namespace tandem::tensor {

/// x [..., inputs] times the transpose of weight [..., outputs, stored inputs]; biases of affine
/// codes alone. For the plain path: any device.
array quantized_product(const array& x,
                        const array& weight,
                        const array& scales,
                        const std::optional<array>& biases,
                        const format::Quantization& quantization);

}  // namespace tandem::tensor
