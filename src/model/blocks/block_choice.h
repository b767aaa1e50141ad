// The choice of blocks of keys that attention reads (MiniMax M3).
#pragma once

#include "kv/cache.h"
#include "model/config.h"
#include "tensor/linear.h"
#include "tensor/norm.h"

namespace tandem::model {

/// For each KV head an index head, whose query meets the one index key of each token: the blocks
/// with the best keys are what all query heads of that KV head attend to. Index heads are where
/// their KV heads are; every rank with heads keeps all index keys.
class BlockChoice {
 public:
  /// `w`: the attention's, which holds index_q_proj, index_k_proj and their norms.
  BlockChoice(const tensor::Weights& w, const Config& config);

  /// x [tokens, hidden]. Stores the tokens' index keys.
  tensor::ChosenKeys operator()(const tensor::array& x,
                                kv::Layer* kv,
                                const tensor::Step& step) const;

 private:
  tensor::Context context_;
  tensor::KeyChoiceShape shape_;
  tensor::StackedLinear query_and_key_;
  tensor::RmsNorm query_norm_, key_norm_;
};

}  // namespace tandem::model
