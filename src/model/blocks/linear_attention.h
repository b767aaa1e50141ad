// Attention by the gated delta rule.
#pragma once

#include "kv/cache.h"
#include "model/config.h"
#include "tensor/causal_conv.h"
#include "tensor/gated_delta.h"
#include "tensor/linear.h"
#include "tensor/norm.h"

namespace tandem::model {

/// out(norm(delta(silu(conv(q, k, v)), a, b)) * silu(z)), where q, k, v, z, b and a are projections
/// of the input, and the norm is one of each value head. The projections are the modules
/// in_proj_qkv, in_proj_z, in_proj_b and in_proj_a, or in_proj_qkvz and in_proj_ba with the rows of
/// each key head together. Cut over the ranks at key heads: value heads that share one stay with
/// it. A row's state is the convolution's, then the rule's.
class LinearAttention {
 public:
  LinearAttention(const tensor::Weights& w, const Config& config);

  /// Of a row, on a rank with this part.
  static uint32_t state_floats(const Config& config, const topology::Part& part);

  /// [tokens, hidden] → the same.
  tensor::array operator()(const tensor::array& x, kv::Layer* kv, const tensor::Step& step) const;

 private:
  void load(const tensor::Weights& w, const Config& config);

  tensor::Context context_;
  std::optional<tensor::StackedLinear> in_;  // all absent on a rank without heads
  std::optional<tensor::CausalConv> conv_;
  std::optional<tensor::GatedDelta> delta_;
  std::optional<tensor::RmsNorm> norm_;
  tensor::RowLinear out_;
};

}  // namespace tandem::model
