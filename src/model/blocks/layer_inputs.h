// What each layer is told of a token, beside what the layers before have made of it.
#pragma once

#include "model/config.h"
#include "tensor/embedding.h"
#include "tensor/linear.h"
#include "tensor/norm.h"

namespace tandem::model {

/// A row of a second table for each token and layer, added to a norm of the token's projected
/// embedding (Gemma 4's per-layer embeddings). Every rank makes those of its layers.
class LayerInputs {
 public:
  /// `body` holds embed_tokens_per_layer [vocab, layers * width], per_layer_model_projection and
  /// per_layer_projection_norm.
  LayerInputs(const tensor::Weights& body, const Config& config);

  /// embedded [tokens, hidden] → [tokens, width] for each of this rank's layers. Requires the step
  /// to outlive the graph.
  std::vector<tensor::array> operator()(const tensor::array& embedded,
                                        const tensor::Step& step) const;

 private:
  tensor::Context context_;
  uint32_t width_;
  uint32_t hidden_;
  tensor::Embedding table_;
  tensor::ColumnLinear projection_;
  tensor::RmsNorm norm_;
};

}  // namespace tandem::model
