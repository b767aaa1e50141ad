// Scores of keys for a choice among them, for any vector type.
#pragma once

#include <cstddef>

#include "kernels/attention_block.h"
#include "kernels/key_scores.h"

namespace tandem::kernels {

template <class V, ScalarType kType>
class KeyScorer {
 public:
  KeyScorer(const KeyScores& piece, float* memory)
      : piece_(piece),
        args_(*piece.args),
        queries_(memory),
        heads_(queries_ + args_.heads * padded(args_.dim)),
        keys_(heads_ + args_.heads * kKeys) {}

  [[gnu::always_inline]] void run() {
    const float* q = args_.q + piece_.token * args_.q_stride;
    for (size_t h = 0; h < args_.heads; ++h)
      for (size_t i = 0; i < args_.dim; ++i)
        queries_[h * padded(args_.dim) + i] = q[h * args_.dim + i];
    for (size_t at = piece_.begin; at < piece_.end; at += kKeys) score_block(at);
  }

 private:
  using Tile = AttentionTile<V>;
  static constexpr size_t kKeys = AttentionSpan::kBlockKeys;

  void score_block(size_t at) {
    const AttentionArgs pool = {.k_pool = args_.k_pool,
                                .kv_type = kType,
                                .page_tokens = args_.page_tokens,
                                .kv_heads = 1,
                                .head_dim = args_.dim,
                                .value_dim = args_.dim};
    const AttentionSpan span = {.args = &pool, .row = piece_.row};
    PoolBlock<V, kType> block{.span = span, .begin = at};
    block.high = piece_.end - at < kKeys ? piece_.end - at : kKeys;
    block.copy_keys(keys_);
    for (size_t j = 0; j < block.high; j += Tile::kPanel) score_panel(j);
    for (size_t j = 0; j < block.high; j += V::kLanes) sum_heads(j, piece_.scores + at + j);
  }

  void score_panel(size_t j) {
    const auto* panel = reinterpret_cast<const std::byte*>(keys_ + j * args_.dim);
    const KeyColumns<Tile::kPanelVecs> columns{.first = {panel, panel + V::kLanes * sizeof(float)},
                                               .stride = Tile::kPanel * sizeof(float)};
    for (size_t h = 0; h < args_.heads; h += Tile::kRows) {
      const size_t left = args_.heads - h, count = left < Tile::kRows ? left : Tile::kRows;
      with_count<Tile::kRows>(count, [&](auto rows) {
        score_tile<V, ScalarType::kF32, decltype(rows)::value, Tile::kPanelVecs>(
            queries_ + h * padded(args_.dim), args_.dim, columns, heads_ + h * kKeys + j);
      });
    }
  }

  /// Of a vector of keys from j of the block on.
  void sum_heads(size_t j, float* to) const {
    const float* weights = args_.weights + piece_.token * args_.weights_stride;
    V sum = V::zero();
    for (size_t h = 0; h < args_.heads; ++h) {
      const V score = V::max(V::zero(), V::load(heads_ + h * kKeys + j));
      sum = sum + V::all(weights[h]) * score;
    }
    sum.store(to);
  }

  const KeyScores& piece_;
  const KeyChoiceArgs& args_;
  float* queries_;  // [heads, padded(dim)]
  float* heads_;    // [heads, kKeys]
  float* keys_;     // [panels, dim, keys of a panel]
};

template <class V>
void score_keys(const KeyScores& piece, float* memory) {
  if (piece.args->kv_type == ScalarType::kF16) {
    KeyScorer<V, ScalarType::kF16>(piece, memory).run();
  } else {
    KeyScorer<V, ScalarType::kF32>(piece, memory).run();
  }
}

}  // namespace tandem::kernels
