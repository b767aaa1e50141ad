// Normalisation of rows.
#pragma once

#include "tensor/weights.h"

namespace tandem::tensor {

/// x / rms(x) * (weight + offset) over runs as wide as the weight: a whole row, or each head of it.
class RmsNorm {
 public:
  RmsNorm(const Weights& module, double eps, double offset = 0);
  /// Without weight: x / rms(x) over runs of `width`.
  RmsNorm(const Context& context, uint32_t width, double eps)
      : RmsNorm(context, std::vector<float>(width, 1.0F), eps) {}
  RmsNorm(const Context& context, std::vector<float> weight, double eps);

  /// Columns of a row of which each has a weight of its own.
  struct Groups {
    uint32_t all = 0;      // columns
    topology::Range here;  // those of this rank: whole groups
    uint32_t width = 0;    // of a group
  };
  /// x / rms(x) * weight over each group of columns. Throws LoadFailure (missing, of another size).
  RmsNorm(const Weights& module, double eps, const Groups& groups);

  /// [tokens, n * width] → the same; with groups, all that are here.
  array operator()(const array& x) const;

  struct Sum {
    array sum;
    array norm;
  };
  /// x + y and its norm, in one pass: [tokens, width] each. Not with groups.
  Sum of_sum(const array& x, const array& y) const;

 private:
  RmsNorm(const Context& context, std::vector<float> weight, uint32_t width, double eps);
  array run_plain(const array& x) const;
  array run_fast(const array& x) const;
  Sum sum_fast(const array& x, const array& y) const;

  Context context_;
  float eps_;
  uint32_t width_;                                    // of what is normed at once
  std::shared_ptr<const std::vector<float>> weight_;  // shared: with the graph's nodes
  array plain_weight_;
};

/// (x - mean) / sqrt(variance + eps) * weight + bias of whole rows.
class LayerNorm {
 public:
  LayerNorm(const Weights& module, double eps);

  /// [tokens, width] → the same.
  array operator()(const array& x) const;

 private:
  Context context_;
  float eps_;
  std::shared_ptr<const std::vector<float>> weight_, bias_;  // shared: with the graph's nodes
};

}  // namespace tandem::tensor
