// Linear attention with a fixed decay of each head (Lightning Attention, arXiv 2401.04658).
#pragma once

#include <memory>

#include "kv/cache.h"
#include "model/config.h"
#include "tensor/gated_delta.h"
#include "tensor/group_norm.h"
#include "tensor/linear.h"
#include "tensor/norm.h"

namespace tandem::model {

/// dense(norm(read) * sigmoid(g)), where q, k, v and g are projections of the input, q and k are
/// normed and turned by their positions, and a head reads, with S its state before the token,
///
///   S = exp(-slope) S + k v^T; read = S^T q / sqrt(head_dim)
///
/// The norm is one of each group of columns (Config::read_norm_groups). Cut over the ranks at
/// heads, also inside such a group. A head's slope is the one of ALiBi (arXiv 2108.12409), less in
/// later layers.
class LightningAttention {
 public:
  /// Of layer `index`.
  LightningAttention(const tensor::Weights& w, const Config& config, uint32_t index);

  /// Of a row, on a rank with this part.
  static uint32_t state_floats(const Config& config, const topology::Part& part);

  /// [tokens, hidden] → the same.
  tensor::array operator()(const tensor::array& x, kv::Layer* kv, const tensor::Step& step) const;

 private:
  void load(const tensor::Weights& w, const Config& config, uint32_t index);

  tensor::Context context_;
  tensor::DeltaShape shape_;  // this rank's heads
  uint32_t norm_groups_;
  std::shared_ptr<const tensor::Rope> rope_;              // shared: by all such layers
  std::optional<tensor::StackedLinear> in_;               // all absent on a rank without heads
  std::optional<tensor::RmsNorm> query_norm_, key_norm_;  // and these where there are none
  std::optional<tensor::GatedDelta> sum_;
  std::optional<tensor::GroupNorm> norm_;
  tensor::RowLinear out_;
};

}  // namespace tandem::model
