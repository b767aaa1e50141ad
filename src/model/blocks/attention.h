// Grouped-query attention with rotary positions.
#pragma once

#include "model/blocks/block_choice.h"
#include "tensor/linear.h"
#include "tensor/norm.h"
#include "tensor/split_norm.h"

namespace tandem::model {

using tensor::array;
using tensor::Step;
using tensor::Weights;

/// Modules below the layer's that families call differently.
struct AttentionNames {
  const char* out = "o_proj";
  const char* q_norm = "q_norm";
  const char* k_norm = "k_norm";
  const char* sinks = "sinks";
};

/// Biases are used where the checkpoint has them.
struct AttentionOptions {
  uint32_t window = 0;  // positions a token sees; 0: all
  bool has_rope = true;
  std::optional<double> qk_norm = {};  // eps of an RMS norm of each query and key head
  bool norms_all_heads = false;        // together, not each by itself
  bool has_sinks = false;              // a logit without value beside those of each query head
  bool is_gated = false;  // q_proj has a gate beside each query, whose sigmoid weighs what is read
  bool norms_values = false;        // an RMS norm of each value head, without weight
  bool has_equal_kv = false;        // values are keys before norm and rope; requires norms
  const char* head_gate = nullptr;  // whose sigmoids weigh what each query head has read
  bool is_sparse = false;           // reads blocks that index heads choose
  bool only_reads = false;          // keys and values of the layer that `kv` belongs to
  const char* fused = nullptr;      // where q, k and v are the rows of one matrix, in this order
  AttentionNames names = {};

  /// The same with what the config says of a layer: its window, its rope, whose keys it reads.
  AttentionOptions of_layer(const Config& config, uint32_t index) const {
    AttentionOptions out = *this;
    out.window = config.windows[index];
    out.has_rope = config.has_rope.empty() || config.has_rope[index];
    out.has_equal_kv = config.has_equal_kv && out.window == 0;
    out.is_sparse = config.is_sparse(index);
    out.only_reads = !config.has_own_kv(index);
    return out;
  }
};

/// Queries and keys in the heads of this rank, their sum over the ranks.
class Attention {
 public:
  Attention(const Weights& w, const Config& config, AttentionOptions options = {});

  /// [tokens, hidden] → the same.
  array operator()(const array& x, kv::Layer* kv, const Step& step) const;

 private:
  void load_norms(const Weights& w, const Config& config, const AttentionOptions& options);
  std::pair<array, array> normed(const array& q, const array& k) const;

  tensor::Context context_;
  tensor::AttentionShape shape_;
  bool norms_all_heads_;
  std::optional<tensor::StackedLinear> qkv_;  // and gates; absent on a rank without heads
  std::optional<tensor::ColumnLinear> head_gate_;
  std::optional<tensor::RmsNorm> q_norm_, k_norm_, v_norm_;
  std::optional<tensor::SplitRmsNorm> q_all_norm_, k_all_norm_;
  std::optional<BlockChoice> choice_;
  tensor::RowLinear out_;
  float value_scale_;
};

}  // namespace tandem::model
