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

  /// [tokens, n * width] → the same.
  array operator()(const array& x) const;

  struct Sum {
    array sum;
    array norm;
  };
  /// x + y and its norm, in one pass: [tokens, width] each.
  Sum of_sum(const array& x, const array& y) const;

 private:
  array run_fast(const array& x) const;
  Sum sum_fast(const array& x, const array& y) const;

  Context context_;
  float eps_;
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
