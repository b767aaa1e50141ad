// RMS normalisation of groups of columns that may lie on several ranks.
#pragma once

#include <memory>
#include <vector>

#include "tensor/weights.h"

namespace tandem::tensor {

/// x / rms(x of its group) * weight. A row's columns lie in groups of neighbours, all of one size,
/// and each rank holds some of the columns, which may begin and end inside a group.
class GroupNorm {
 public:
  struct Columns {
    uint32_t all = 0;      // of a row
    uint32_t groups = 0;   // a divisor of it
    topology::Range here;  // those of this rank
  };

  /// Throws LoadFailure (missing, of another size than all columns).
  GroupNorm(const Weights& module, double eps, const Columns& columns);

  /// [tokens, columns here] → the same, after one exchange: of squares, [tokens, groups].
  array operator()(const array& x) const;
  /// For a rank without columns: joins the others' exchange. `x` is [tokens, any].
  static array join_others(const Context& context, const array& x, uint32_t groups);

 private:
  /// What of this rank's columns is of one group.
  struct Run {
    uint32_t group;
    topology::Range columns;  // counted from the first here
  };

  array squares_fast(const array& x) const;
  array squares_plain(const array& x) const;
  array normed_fast(const array& x, const array& squares) const;
  array normed_plain(const array& x, const array& squares) const;

  Context context_;
  float eps_;
  uint32_t groups_;
  uint32_t group_width_;
  std::vector<Run> runs_;
  std::shared_ptr<const std::vector<float>> weight_;  // [columns here]; shared: with graph nodes
};

}  // namespace tandem::tensor
