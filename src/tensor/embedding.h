// Token embeddings, and the head that turns hidden states into logits.
#pragma once

#include "tensor/matrix.h"

namespace tandem::tensor {

/// A table [vocab, hidden] cut by rows over the ranks; a tied one is also the head.
class Embedding {
 public:
  Embedding(const Weights& module, uint32_t hidden, topology::Range rows)
      : Embedding(module, hidden, rows, {0, hidden}) {}
  /// Of these columns alone.
  Embedding(const Weights& module, uint32_t hidden, topology::Range rows, topology::Range columns);

  /// [tokens, columns]. Each rank gives its own rows and zeros for others; their sum is exact. Ids
  /// that only the device knows (Step::id_array) are for a rank alone. Requires the step to outlive
  /// the graph.
  array operator()(const Step& step) const;

  /// Logits of this rank's rows, [tokens, rows].
  array as_head(const array& x) const { return matrix_->multiply(x).front(); }

 private:
  Context context_;
  uint32_t width_;  // of a row that this gives
  topology::Range rows_;
  std::optional<Matrix> matrix_;  // absent on a rank without rows
};

}  // namespace tandem::tensor
