// A matrix of a checkpoint while its tensors are mapped, on its way into the layout of a path.
#pragma once

#include <span>

#include "kernels/packed_matrix.h"
#include "tensor/weights.h"

namespace tandem::tensor {

struct MappedMatrix {
  format::Tensor weight;
  std::optional<format::Quantization> quantization;
  format::Tensor scales = {}, biases = {};  // when quantized

  size_t outputs() const { return static_cast<size_t>(weight.shape[0]); }
  size_t inputs() const;
  bool is_like(const MappedMatrix& other) const;
};

/// The slices of matrices that are alike, one below the other. Any thread.
Result<kernels::PackedMatrix> pack(std::span<const MappedMatrix> matrices,
                                   kernels::Slice rows,
                                   kernels::Slice columns);

/// What pack() gave, counted as bytes of `module`. Throws LoadFailure, which names the module.
kernels::PackedMatrix packed_or_throw(const Weights& module, Result<kernels::PackedMatrix> packed);

/// An array of its own on the default device. `data` may go afterwards.
array own_array(const void* data, const mx::Shape& shape, mx::Dtype dtype);

}  // namespace tandem::tensor
