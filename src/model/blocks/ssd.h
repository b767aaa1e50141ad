// The mixer of Mamba 2: a state space whose past is one matrix a head (SSD).
#pragma once

#include "kv/cache.h"
#include "model/config.h"
#include "tensor/causal_conv.h"
#include "tensor/gated_delta.h"
#include "tensor/linear.h"
#include "tensor/norm.h"
#include "tensor/split_norm.h"

namespace tandem::model {

/// out(norm(silu(z) * ssd(silu(conv(x, B, C)), dt))), where z, x, B, C and dt are the rows of one
/// projection of the input, in_proj, in this order. The norm is one of each
/// group's. Cut over the ranks at groups; where there is one group, at heads, and every rank that
/// has some makes its B and C. A row's state is the convolution's, then the rule's.
class SsdMixer {
 public:
  SsdMixer(const tensor::Weights& w, const Config& config);

  /// Of a row, on a rank with this part.
  static uint32_t state_floats(const Config& config, const topology::Part& part);

  /// [tokens, hidden] → the same.
  tensor::array operator()(const tensor::array& x, kv::Layer* kv, const tensor::Step& step) const;

 private:
  void load(const tensor::Weights& w, const Config& config);
  tensor::array normed(const tensor::array& x) const;

  tensor::Context context_;
  bool norms_groups_;
  std::optional<tensor::StackedLinear> in_;  // all absent on a rank without heads
  std::optional<tensor::CausalConv> conv_;
  std::optional<tensor::GatedDelta> ssd_;
  std::optional<tensor::RmsNorm> group_norm_;  // one of both
  std::optional<tensor::SplitRmsNorm> all_norm_;
  tensor::RowLinear out_;
};

}  // namespace tandem::model
