// The gated short convolution of lfm2.
#pragma once

#include "kv/cache.h"
#include "model/config.h"
#include "tensor/causal_conv.h"
#include "tensor/linear.h"

namespace tandem::model {

/// out(c * conv(b * x)) where b, c and x are projections of the input: the rows of one matrix, in
/// this order. Channels do not meet in the convolution, so that each rank has some.
class ShortConv {
 public:
  ShortConv(const tensor::Weights& w, const Config& config);

  /// Of a row, on a rank with this part.
  static uint32_t state_floats(const Config& config, const topology::Part& part) {
    return (config.conv_taps - 1) * part.channels.size();
  }

  /// [tokens, hidden] → the same.
  tensor::array operator()(const tensor::array& x, kv::Layer* kv, const tensor::Step& step) const;

 private:
  std::optional<tensor::StackedLinear> in_;  // absent on a rank without channels
  std::optional<tensor::CausalConv> conv_;
  tensor::RowLinear out_;
};

}  // namespace tandem::model
