// RMS normalisation of rows that lie on several ranks.
#pragma once

#include <vector>

#include "tensor/weights.h"

namespace tandem::tensor {

/// x / rms(x) * weight over all columns of a row, of which each rank holds some.
class SplitRmsNorm {
 public:
  struct Columns {
    uint32_t all = 0;         // of a row
    topology::Range here;     // those of this rank: neighbours may hold the same ones
    topology::Range counted;  // those whose squares it adds: each column counts on one rank
  };

  /// Throws LoadFailure (missing, of another size than all columns).
  SplitRmsNorm(const Weights& module, double eps, const Columns& columns);

  /// What sums_of_squares() and the norm share.
  struct Piece {
    const SplitRmsNorm& norm;
    array x;  // [tokens, columns here]
  };

  /// [tokens, pieces], float32: each piece's sum of squares over the ranks, in one exchange.
  /// Requires one context of all.
  static array sums_of_squares(const std::vector<Piece>& pieces);
  /// For a rank without columns: joins the others' exchange. `x` is [tokens, any].
  static array sums_of_others(const Context& context, const array& x, uint32_t pieces);

  /// x [tokens, columns here] → the same, with column `index` of `sums`.
  array operator()(const array& x, const array& sums, uint32_t index) const;

 private:
  array run_plain(const array& x, const array& sums, uint32_t index) const;

  Context context_;
  float eps_;
  Columns columns_;
  std::shared_ptr<const std::vector<float>> weight_;  // [columns here]; shared: with graph nodes
  array plain_weight_;
};

}  // namespace tandem::tensor
