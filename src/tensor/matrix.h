// Weight matrices, dense or quantized, whole or the part that this rank holds.
#pragma once

#include <memory>
#include <vector>

#include "kernels/matmul.h"
#include "tensor/step.h"
#include "tensor/weights.h"

namespace tandem::tensor {

/// Where one part of a stacked matrix comes from.
struct MatrixSource {
  Weights module;        // holds weight, and scales and biases when quantized; bias when it has one
  topology::Range rows;  // of the whole matrix
  std::vector<topology::Range> more = {};  // rows below them

  std::vector<topology::Range> runs() const;
  uint32_t outputs() const;
};

/// One or more matrices with the same inputs, multiplied together.
class Matrix {
 public:
  /// Loads the rows of each source and columns `columns` of them all; a bias only with `with_bias`.
  /// Throws LoadFailure (missing, not of `inputs` columns, cut inside a quantization group).
  Matrix(const std::vector<MatrixSource>& sources,
         uint32_t inputs,
         topology::Range columns,
         bool with_bias);

  /// [tokens, columns] → one [tokens, outputs of the source] for each source, plus its bias.
  std::vector<array> multiply(const array& x) const;

  /// Rows `ids` as [ids, columns], the first source beginning with row `first`; others' rows are
  /// zeros. One source only. Requires ids to outlive the graph.
  array gather(const std::vector<uint32_t>& ids, uint32_t first) const;
  /// Of ids that only the device knows, below the row count. Plain path.
  array gather(const array& ids) const;

 private:
  /// A source as plain MLX arrays.
  struct Plain {
    array weight;
    std::optional<array> scales = {}, biases = {};
    std::optional<array> bias = {};
    format::Quantization quantization = {};  // where there are scales

    array multiply(const array& x) const;
  };
  /// Sources that share a layout, packed together.
  struct Packed {
    std::shared_ptr<const kernels::PackedMatrix> matrix;  // shared: with the graph's nodes
    size_t at = 0;                                        // its first output among all
  };

  array gather_packed(const std::vector<uint32_t>& ids, uint32_t first) const;
  void load_plain(const MatrixSource& source, topology::Range columns, bool with_bias);
  void load_packed(const std::vector<MatrixSource>& sources, topology::Range columns);
  std::vector<array> multiply_packed(const array& x) const;
  /// Of all outputs, from args.y on.
  static CpuCall matmul_call(std::shared_ptr<kernels::WorkerPool> workers,
                             const std::vector<Packed>& packed,
                             const kernels::MatmulArgs& args);

  Context context_;
  uint32_t columns_ = 0;
  std::vector<uint32_t> widths_;  // outputs of each source
  std::vector<Plain> plain_;
  std::vector<Packed> packed_;
  std::shared_ptr<const std::vector<float>>
      bias_;  // of all outputs, packed only; shared: with nodes
};

}  // namespace tandem::tensor
