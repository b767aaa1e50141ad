// Multi-head latent attention (DeepSeek V2, arXiv 2405.04434) in its absorbed form.
#pragma once

#include "kv/cache.h"
#include "model/config.h"
#include "tensor/head_linear.h"
#include "tensor/linear.h"
#include "tensor/norm.h"

namespace tandem::model {

/// A token keeps [rope key | latent vector], the same on all ranks. A head's key would be a matrix
/// times the latent vector: its query is multiplied by that matrix instead, so that all heads
/// attend to the one vector, and its value matrix is applied to what they found there. Heads are
/// cut over the ranks.
///
/// The matrices of heads are at embed_q and unembed_out, or are the rows [key | value] of each head
/// in kv_b_proj.
///
/// Where the config says so, a token attends to some keys only, which a whole indexer on every rank
/// chooses, so that all ranks choose alike (DeepSeek V3.2).
class LatentAttention {
 public:
  struct Options {
    const char* out = "o_proj";  // the last projection
    uint32_t index = 0;          // among the attentions of a layer that has several
  };

  LatentAttention(const tensor::Weights& w, const Config& config, const Options& options);
  LatentAttention(const tensor::Weights& w, const Config& config)
      : LatentAttention(w, config, Options{}) {}

  /// [tokens, hidden] → the same.
  tensor::array operator()(const tensor::array& x, kv::Layer* kv, const tensor::Step& step) const;

 private:
  void load_queries(const tensor::Weights& w, const Config& config);
  void load_latent_norm(const tensor::Weights& w, const LatentDims& dims);
  void load_heads(const tensor::Weights& w, const Config& config);
  void load_choice(const tensor::Weights& w, const Config& config);

  tensor::Context context_;
  tensor::AttentionShape shape_;
  uint32_t rope_;
  uint32_t index_;
  std::optional<tensor::StackedLinear> input_;  // all absent on a rank without heads
  std::optional<tensor::RmsNorm> query_norm_;   // and this and the next without a query rank
  std::optional<tensor::ColumnLinear> query_;
  std::optional<tensor::RmsNorm> latent_norm_;
  std::optional<tensor::HeadLinear> embed_;    // a query's plain part → latent
  std::optional<tensor::HeadLinear> unembed_;  // latent → a head's value
  tensor::RowLinear out_;

  /// The indexer.
  struct Choice {
    tensor::ColumnLinear query;
    tensor::StackedLinear key_and_weights;
    tensor::LayerNorm key_norm;
    tensor::KeyChoiceShape shape;
  };
  std::optional<Choice> choice_;
};

}  // namespace tandem::model
