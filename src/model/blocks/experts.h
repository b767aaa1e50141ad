// A layer's MLP made of experts.
#pragma once

#include "model/config.h"
#include "tensor/experts.h"
#include "tensor/linear.h"

namespace tandem::model {

/// A router and the experts among which it chooses, the inside of each cut over the ranks. The
/// router is whole on every rank, so that all choose alike.
class ExpertMlp {
 public:
  ExpertMlp(const tensor::Weights& w, const Config& config);

  /// [tokens, hidden] → the same.
  tensor::array operator()(const tensor::array& x) const;

 private:
  tensor::Context context_;
  std::optional<tensor::ColumnLinear> router_;  // both absent on a rank without columns
  std::optional<tensor::Experts> experts_;
};

}  // namespace tandem::model
