// Scores of keys for a choice among them, for any vector type.
#pragma once

#include <cstddef>
#include <limits>

#include "kernels/attention_block.h"
#include "kernels/key_scores.h"

namespace tandem::kernels {

/// Few queries read the pool itself; for more, a block of keys is copied to float32 once. A score's
/// bits are the same in both.
template <class V, ScalarType kType>
class KeyScorer {
 public:
  KeyScorer(const KeyScores& piece, float* memory)
      : piece_(piece),
        args_(*piece.args),
        count_(piece.count * args_.heads),
        pool_{.k_pool = args_.k_pool,
              .v_pool = args_.k_pool,  // never read: says that keys are no rows
              .kv_type = kType,
              .page_tokens = args_.page_tokens,
              .kv_heads = 1,
              .head_dim = args_.dim,
              .value_dim = args_.dim},
        span_{.args = &pool_, .row = piece.row},
        queries_(memory),
        scores_(queries_ + count_ * padded(args_.dim)),
        weighed_(scores_ + count_ * kKeys),
        keys_(weighed_ + kKeys) {}

  [[gnu::always_inline]] void run() {
    load_queries();
    const bool is_direct = count_ <= 2 * Tile::kDirectRows && args_.page_tokens % kLanes == 0;
    for (size_t at = piece_.begin; at < piece_.end; at += kKeys) {
      Block block{.span = span_, .begin = at};
      block.high = piece_.end - at < kKeys ? piece_.end - at : kKeys;
      if (is_direct)
        score_directly(block);
      else
        score_copied(block);
      for (size_t t = 0; t < piece_.count; ++t) add_token(t, block);
    }
  }

 private:
  using Tile = AttentionTile<V>;
  using Block = PoolBlock<V, kType>;
  static constexpr size_t kKeys = AttentionSpan::kBlockKeys;
  static constexpr size_t kLanes = V::kLanes;

  float* query(size_t q) const { return queries_ + q * padded(args_.dim); }

  void load_queries() {
    for (size_t q = 0; q < count_; ++q) {
      const size_t token = piece_.token + q / args_.heads, head = q % args_.heads;
      const float* from = args_.q + token * args_.q_stride + head * args_.dim;
      for (size_t i = 0; i < args_.dim; ++i) query(q)[i] = from[i];
    }
  }

  void score_directly(const Block& block) {
    const std::byte* at[Block::kVecs];
    block.find_keys(at);
    for (size_t q = 0; q < count_; q += Tile::kDirectRows) {
      const size_t left = count_ - q, rows = left < Tile::kDirectRows ? left : Tile::kDirectRows;
      with_count<Tile::kDirectRows>(
          rows, [&](auto n) { score_vectors<decltype(n)::value>(q, block, at); });
    }
  }

  template <int kRows>
  [[gnu::always_inline]] void score_vectors(size_t q,
                                            const Block& block,
                                            const std::byte* const* at) {
    constexpr int kVecs = Tile::direct_vecs(kRows);
    for (size_t v = 0; v * kLanes < block.high; v += kVecs) {
      KeyColumns<kVecs> columns{.stride = args_.page_tokens * Block::kBytes,
                                .ahead = q == 0 ? next_page(block.begin + v * kLanes) : nullptr};
      for (size_t c = 0; c < kVecs; ++c) columns.first[c] = at[v + c];
      score_tile<V, kType, kRows, kVecs>(query(q), args_.dim, columns,
                                         scores_ + q * kKeys + v * kLanes);
    }
  }

  /// What to fetch while keys from a position on are read: as many bytes of the page after theirs.
  const std::byte* next_page(size_t position) const {
    const size_t page = position / args_.page_tokens + 1;
    if (page * args_.page_tokens >= piece_.end) return nullptr;
    const size_t slot = piece_.row->pages[page] * args_.page_tokens + position % args_.page_tokens;
    return static_cast<const std::byte*>(args_.k_pool) + slot * args_.dim * Block::kBytes;
  }

  void score_copied(const Block& block) {
    block.copy_keys(keys_);
    for (size_t j = 0; j < block.high; j += Tile::kPanel) {
      const auto* panel = reinterpret_cast<const std::byte*>(keys_ + j * args_.dim);
      const KeyColumns<Tile::kPanelVecs> columns{.first = {panel, panel + kLanes * sizeof(float)},
                                                 .stride = Tile::kPanel * sizeof(float)};
      for (size_t q = 0; q < count_; q += Tile::kRows) {
        const size_t left = count_ - q, rows = left < Tile::kRows ? left : Tile::kRows;
        with_count<Tile::kRows>(rows, [&](auto n) {
          score_tile<V, ScalarType::kF32, decltype(n)::value, Tile::kPanelVecs>(
              query(q), args_.dim, columns, scores_ + q * kKeys + j);
        });
      }
    }
  }

  /// Scores of the blocks that a token sees keys of.
  void add_token(size_t t, const Block& block) {
    const size_t position = piece_.position + t;
    if (position < block.begin) return;
    const size_t seen = position + 1 - block.begin;
    const size_t high = seen < block.high ? seen : block.high;
    float* to = piece_.scores + t * args_.lists() * piece_.stride;
    const float* scores = scores_ + t * args_.heads * kKeys;
    if (args_.weights != nullptr) {
      weigh(t, scores, high);
      return add_keys(weighed_, block.begin, high, to);
    }
    for (size_t h = 0; h < args_.heads; ++h)
      add_keys(scores + h * kKeys, block.begin, high, to + h * piece_.stride);
  }

  /// The heads' scores of a token, weighed and summed.
  void weigh(size_t t, const float* scores, size_t high) {
    const float* weights = args_.weights + (piece_.token + t) * args_.weights_stride;
    for (size_t j = 0; j < high; j += kLanes) {
      V sum = V::zero();
      for (size_t h = 0; h < args_.heads; ++h)
        sum = sum + V::all(weights[h]) * V::max(V::zero(), V::load(scores + h * kKeys + j));
      sum.store(weighed_ + j);
    }
  }

  /// `count` keys' scores from position `at` on, to those of their blocks.
  void add_keys(const float* scores, size_t at, size_t count, float* to) const {
    if (args_.block == 1) {
      for (size_t j = 0; j < count; ++j) to[at + j] = scores[j];
      return;
    }
    for (size_t j = 0; j < count;) {
      const size_t block = (at + j) / args_.block, rest = (block + 1) * args_.block - (at + j);
      const size_t some = rest < count - j ? rest : count - j;
      const float most = greatest(scores + j, some);
      const bool is_first = rest == args_.block;
      if (is_first || most > to[block]) to[block] = most;
      j += some;
    }
  }

  /// -infinity where none is a number.
  static float greatest(const float* scores, size_t count) {
    V most = V::all(-std::numeric_limits<float>::infinity());
    size_t j = 0;
    for (; j + kLanes <= count; j += kLanes) most = V::max(V::load(scores + j), most);
    float out = most.greatest();
    for (; j < count; ++j) out = scores[j] > out ? scores[j] : out;
    return out;
  }

  const KeyScores& piece_;
  const KeyChoiceArgs& args_;
  const size_t count_;  // queries: (token, head), heads inner
  const AttentionArgs pool_;
  const AttentionSpan span_;
  float* queries_;  // [queries, padded(dim)]
  float* scores_;   // [queries, kKeys]
  float* weighed_;  // [kKeys]
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
