// A decoder-only language model, or the part of it that one rank holds.
#pragma once

#include <memory>
#include <vector>

#include "kv/cache.h"
#include "model/arch.h"
#include "model/blocks/layer_inputs.h"
#include "tensor/embedding.h"
#include "tensor/norm.h"

namespace tandem::model {

/// Builds the graph of a step; evaluates nothing. Engine thread.
class Decoder {
 public:
  /// Errors: what the checkpoint lacks, or holds and the model does not use, by name.
  static Result<std::unique_ptr<Decoder>> load(std::shared_ptr<const format::Checkpoint> checkpoint,
                                               const tensor::Context& context,
                                               const std::vector<topology::Part>& parts,
                                               uint32_t rank);

  /// [tokens, hidden]. Requires the part to have the embedding, or layers to be told of tokens.
  tensor::array embed(const tensor::Step& step) const;

  /// Runs this rank's layers: [tokens, hidden] → the same.
  tensor::array run_layers(tensor::array x, kv::Cache& cache, const tensor::Step& step) const;

  /// Logits of the tokens that want them: [outputs, vocab] float32 on rank 0, an empty array on
  /// ranks that only help. Requires the part to have the head, and a token that wants logits.
  tensor::array logits(const tensor::array& x, const tensor::Step& step) const;

  /// Hidden states after the final norm, pooled: see tensor::pooled_rows(). Requires the part to
  /// have the head.
  tensor::array pooled(const tensor::array& x, const tensor::Step& step) const;

  /// What the cache that run_layers() takes must hold: see model::layer_shapes().
  std::vector<kv::LayerShape> layer_shapes(bool frees_windows) const {
    return model::layer_shapes(model_, part_, frees_windows);
  }

  const Config& config() const { return model_.config; }
  /// Bytes of weights that this rank holds.
  uint64_t weight_bytes() const { return weight_bytes_; }

 private:
  Decoder(Description model, const tensor::Weights& w, std::vector<topology::Range> vocab_parts);
  void load_head(const tensor::Weights& w);

  Description model_;
  tensor::Context context_;
  topology::Part part_;
  std::vector<topology::Range> vocab_parts_;
  std::optional<tensor::Embedding> embedding_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::optional<LayerInputs> layer_inputs_;
  std::optional<tensor::RmsNorm> norm_;
  std::optional<tensor::Embedding> head_;  // absent when tied
  uint64_t weight_bytes_ = 0;
};

}  // namespace tandem::model
