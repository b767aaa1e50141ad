// Linear layers that know how they are split over ranks.
#pragma once

#include <vector>

#include "tensor/matrix.h"

namespace tandem::tensor {

/// y = x W^T (+ bias when the checkpoint has one), of some outputs only: each rank computes its
/// own.
class ColumnLinear {
 public:
  ColumnLinear(const Weights& module, uint32_t inputs, topology::Range outputs)
      : matrix_({{module, outputs}}, inputs, {0, inputs}, true) {}

  array operator()(const array& x) const { return matrix_.multiply(x).front(); }

 private:
  Matrix matrix_;
};

/// Several ColumnLinears of one input, in one product.
class StackedLinear {
 public:
  StackedLinear(const std::vector<MatrixSource>& sources, uint32_t inputs)
      : matrix_(sources, inputs, {0, inputs}, true) {}

  std::vector<array> operator()(const array& x) const { return matrix_.multiply(x); }

 private:
  Matrix matrix_;
};

/// y = x W^T + bias where each rank holds some inputs: the products are summed over the ranks, then
/// the bias is added. A rank without inputs adds zeros.
class RowLinear {
 public:
  RowLinear(const Weights& module, uint32_t outputs, uint32_t inputs, topology::Range columns);

  array operator()(const array& x) const;
  /// What this rank adds to the sum, for a caller that has more to add. Requires inputs, and no
  /// bias where there are several ranks.
  array part(const array& x) const { return matrix_->multiply(x).front(); }
  /// For a rank without inputs: what the others' parts sum up to. `x` is the block's input,
  /// [tokens, any].
  array sum_of_others(const array& x) const;

 private:
  array with_bias(const array& sum) const;

  Context context_;
  uint32_t outputs_;
  std::optional<Matrix> matrix_;
  std::optional<array> bias_;
};

}  // namespace tandem::tensor
