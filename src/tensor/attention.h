// Causal attention of a ragged step over paged keys and values.
#pragma once

#include <cmath>
#include <memory>

#include "tensor/key_choice.h"

namespace tandem::tensor {

/// Queries grow with their position, as Llama 4 has it: by 1 + beta * log(1 + floor(position /
/// context)).
struct QueryScale {
  float beta = 0;  // 0: they do not
  uint32_t context = 1;

  float at(uint32_t position) const {
    return 1 + beta * std::log(1 + static_cast<float>(position / context));
  }
};

/// One rank's share of an attention layer. No family has both sinks and a cap, which the plain path
/// does not combine.
struct AttentionShape {
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t latent_dim = 0;           // as the pool's: see PoolShape
  uint32_t value_dim = 0;            // the same
  std::vector<uint32_t> kv_of_head;  // [heads]: any map, so that cuts inside a group work
  float scale = 1;                   // of q k
  uint32_t window = 0;               // positions a token sees, itself included; 0: all
  float softcap = 0;                 // scores become cap * tanh(score / cap); 0: no cap
  std::vector<float> sinks = {};     // [heads]: a logit without value in each softmax; empty: none
  QueryScale query_scale = {};
  bool only_reads = false;           // the pool is another layer's, who writes k and v
  std::shared_ptr<const Rope> rope;  // shared: by all layers
};

/// Projections of a step's tokens.
struct QueryKeyValue {
  array q;  // [tokens, heads * head_dim]
  array k;  // [tokens, kv_heads * head_dim]; not looked at by layers that only read, nor is v
  array v;  // [tokens, kv_heads * value_dim]; not looked at where the pool is latent
};

/// Rotates q and k, stores k and v in the pool and attends to everything that each token may see.
/// A layer that only reads rotates q alone and attends to what its pool's layer has stored before.
///
/// Result    [tokens, heads * PoolShape::values()]
/// Chosen    what tokens take where they see more than that; null: all. Single keys of a latent
///           pool, or blocks that pages divide; not beside windows, caps or sinks
/// Requires  the pool's order to be threaded through every use of it; the step to outlive the graph
array attend(Pool& pool,
             const QueryKeyValue& x,
             const AttentionShape& shape,
             const Step& step,
             const Context& context,
             const ChosenKeys* chosen = nullptr);

}  // namespace tandem::tensor
