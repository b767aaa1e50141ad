// A matrix of a checkpoint while its tensors are mapped, on its way into the layout of a path.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "kernels/packed_matrix.h"
#include "tensor/weights.h"

namespace tandem::tensor {

struct MappedMatrix {
  std::string name;  // of the module, for errors
  format::Tensor weight;
  std::optional<format::Quantization> quantization;
  bool is_in_float32 = false;               // of a checkpoint in it
  format::Tensor scales = {}, biases = {};  // when quantized; biases only of affine codes

  size_t outputs() const { return static_cast<size_t>(weight.shape[0]); }
  size_t inputs() const;
  /// Whether the codes are affine, with biases beside the scales.
  bool has_biases() const {
    return quantization && quantization->mode == format::QuantMode::kAffine;
  }
  bool is_like(const MappedMatrix& other) const;
};

/// Rows of a module's matrix. Throws LoadFailure (missing, or what check_layout() refuses).
MappedMatrix map(const Weights& module, topology::Range rows);

/// Whether the tensors are of types that can be computed with, those of their mode, and scales and
/// biases have one number for each group. Errors name the matrix: kUnsupported, kCorrupt.
Status check_layout(const MappedMatrix& matrix);

/// kCorrupt with the tensor's name when a slice holds a number that is NaN or infinite,
/// with which every request would fail. Any thread.
Status check_finite(const MappedMatrix& matrix, kernels::Slice rows, kernels::Slice columns);

/// The same, thrown as LoadFailure.
void require_finite(const MappedMatrix& matrix, topology::Range rows, topology::Range columns);

/// The slices of matrices that are alike, one below the other. Errors name a matrix: those of
/// check_finite() and of the layout. On this thread alone: for callers that pack many at once.
Result<kernels::PackedMatrix> pack_here(std::span<const MappedMatrix> matrices,
                                        kernels::Slice rows,
                                        kernels::Slice columns);

/// The same with one more thread, which checks while this one packs.
Result<kernels::PackedMatrix> pack(std::span<const MappedMatrix> matrices,
                                   kernels::Slice rows,
                                   kernels::Slice columns);

/// What pack() gave, counted as bytes of `module`. Throws LoadFailure.
kernels::PackedMatrix packed_or_throw(const Weights& module, Result<kernels::PackedMatrix> packed);

/// The matrices that become packed matrix `index` of several, mapped when asked for. Any thread;
/// may throw LoadFailure.
using MatricesOf = std::function<std::vector<MappedMatrix>(uint32_t index)>;

/// `count` of them by all workers, counted as bytes of `module`. Of a checkpoint that is converted
/// as it is mapped, no more are held at once than there are workers. Throws LoadFailure.
std::vector<kernels::PackedMatrix> pack_all(const Weights& module,
                                            uint32_t count,
                                            const MatricesOf& map,
                                            kernels::Slice rows = {},
                                            kernels::Slice columns = {});

/// An array of its own on the default device. `data` may go afterwards.
array own_array(const void* data, const mx::Shape& shape, mx::Dtype dtype);

}  // namespace tandem::tensor
