// Attention by the gated delta rule with a decay for each key channel (Kimi Delta Attention, arXiv
// 2510.26692).
#pragma once

#include "kv/cache.h"
#include "model/config.h"
#include "tensor/causal_conv.h"
#include "tensor/gated_delta.h"
#include "tensor/linear.h"
#include "tensor/norm.h"

namespace tandem::model {

/// o(norm(delta(silu(conv(q, k, v)), f, b)) * sigmoid(g)), where q, k, v and b are projections of
/// the input, f and g are two projections each, the first one to as many numbers as a head has, and
/// the norm is one of each head. Cut over the ranks at heads; what the first projections of f and g
/// give is made by every rank that has some. A row's state is the last inputs of the convolutions
/// of q, k and v, then the rule's.
///
/// A convolution is at q_conv.conv, or at q_conv1d as published; so are k's and v's.
class ChannelDelta {
 public:
  ChannelDelta(const tensor::Weights& w, const Config& config);

  /// Of a row, on a rank with this part.
  static uint32_t state_floats(const Config& config, const topology::Part& part);

  /// [tokens, hidden] → the same.
  tensor::array operator()(const tensor::array& x, kv::Layer* kv, const tensor::Step& step) const;

 private:
  void load(const tensor::Weights& w, const Config& config);

  tensor::Context context_;
  std::optional<tensor::StackedLinear> in_;  // all absent on a rank without heads
  std::optional<tensor::ColumnLinear> decay_;
  std::optional<tensor::ColumnLinear> gate_;
  std::optional<tensor::CausalConv> conv_;
  std::optional<tensor::GatedDelta> delta_;
  std::optional<tensor::RmsNorm> norm_;
  tensor::RowLinear out_;
};

}  // namespace tandem::model
