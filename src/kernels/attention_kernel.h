// Attention of a few queries over one span of keys, for any vector type.
#pragma once

#include <cstddef>
#include <limits>

#include "kernels/attention_block.h"
#include "kernels/attention_scores.h"
#include "kernels/vec_math.h"

namespace tandem::kernels {

/// Few queries read the pool itself, block by block. For more, a block is copied to float32 once,
/// and panels of it that fit the first cache meet all queries in turn.
template <class V, ScalarType kType>
class SpanKernel {
 public:
  SpanKernel(const AttentionSpan& span, const SpanState& state, const SpanScratch& scratch)
      : span_(span),
        state_(state),
        scratch_(scratch),
        dim_(span.args->head_dim),
        value_dim_(span.args->value_dim) {}

  [[gnu::always_inline]] void run() {
    begin();
    const size_t first = span_.first_visible(span_.position(0));
    const size_t last = span_.position(span_.queries() - 1);
    const size_t end = span_.key_begin + AttentionSpan::kSpanKeys;
    for (size_t at = span_.key_begin; at < end && at <= last; at += kKeys) {
      if (at + kKeys <= first) continue;
      Block block{.span = span_, .begin = at, .next_end = last < end ? last + 1 : end};
      block.low = first > at ? first - at : 0;
      block.high = last + 1 - at < kKeys ? last + 1 - at : kKeys;
      if (is_direct_ && block.has_vectors()) {
        for (size_t g = 0; g < group_count_; ++g) attend_direct(groups_[g], block);
      } else {
        attend_copied(block);
      }
    }
    for (size_t q = 0; q < span_.queries(); ++q) state_.total[q] = V::load(total(q)).sum();
  }

 private:
  using Tile = AttentionTile<V>;
  using Block = PoolBlock<V, kType>;
  static constexpr size_t kKeys = AttentionSpan::kBlockKeys;
  static constexpr size_t kLanes = V::kLanes;
  static constexpr size_t kMostDirect = 2 * Tile::kDirectRows;  // queries
  static constexpr float kNothing = -std::numeric_limits<float>::infinity();

  /// Queries that share a tile.
  struct Group {
    size_t first = 0;
    size_t count = 0;
    size_t first_position = 0;
    size_t last_position = 0;
  };
  /// Keys of a block: those that some query of a group sees.
  struct Seen : SeenKeys {
    size_t first_vec() const { return low / kLanes; }
    size_t end_vec() const { return (high + kLanes - 1) / kLanes; }
  };

  float* query(size_t q) const { return scratch_.queries + q * padded(dim_); }
  float* total(size_t q) const { return scratch_.totals + q * SpanScratch::kTotals; }
  float* scores(size_t q) const { return scratch_.scores + q * kKeys; }
  float* values(size_t q) const { return state_.values + q * padded(value_dim_); }

  /// Scales the queries, empties the state and shares the queries out to groups of like sizes.
  void begin() {
    const AttentionArgs& args = *span_.args;
    const V factor = V::all(span_.query_factor());
    size_t q = 0;
    for (size_t t = 0; t < span_.tokens; ++t) {
      const float* token =
          args.q + (span_.row->first_token + span_.first_token + t) * args.q_stride;
      for (size_t h = 0; h < span_.head_count; ++h, ++q) {
        const float* from = token + span_.heads[h] * dim_;
        map2<V>(from, from, query(q), dim_, [&](V x, V) { return x * factor; });
        V::zero().store(total(q));
        state_.greatest[q] = kNothing;
        for (size_t i = 0; i < padded(value_dim_); i += kLanes) V::zero().store(values(q) + i);
      }
    }
    is_direct_ = q <= kMostDirect;
    const size_t rows = is_direct_ ? Tile::kDirectRows : Tile::kRows;
    const size_t count = (q + rows - 1) / rows;
    for (size_t g = 0; g < count; ++g) {
      const size_t from = span_.queries() * g / count, to = span_.queries() * (g + 1) / count;
      groups_[group_count_++] = {from, to - from, span_.position(from), span_.position(to - 1)};
    }
  }

  Seen seen_by(size_t first_position, size_t last_position, size_t at) const {
    return {span_.seen_keys(first_position, last_position, at, kKeys)};
  }
  Seen seen_by(const Group& group, size_t at) const {
    return seen_by(group.first_position, group.last_position, at);
  }

  void attend_direct(const Group& group, Block block) {
    const Seen seen = seen_by(group, block.begin);
    if (seen.is_empty()) return;
    block.low = seen.low;
    block.high = seen.high;
    with_count<Tile::kDirectRows>(
        group.count, [&](auto rows) { attend_directly<decltype(rows)::value>(group, block); });
  }

  template <int kRows>
  [[gnu::always_inline]] void attend_directly(const Group& group, const Block& block) {
    constexpr int kVecs = Tile::direct_vecs(kRows);
    const std::byte* at[Block::kVecs];
    block.find_keys(at);
    for (size_t v = 0; v < Block::kVecs; v += kVecs) {
      if (v * kLanes >= block.high || (v + kVecs) * kLanes <= block.low) continue;
      KeyColumns<kVecs> columns{.stride = block.page_tokens() * Block::kBytes};
      // While keys are read, their values come: as many bytes.
      if (v * kLanes >= block.low) columns.ahead = block.value_at(block.begin + v * kLanes);
      for (size_t c = 0; c < kVecs; ++c) columns.first[c] = at[v + c];
      score_tile<V, kType, kRows, kVecs>(query(group.first), dim_, columns,
                                         scores(group.first) + v * kLanes);
    }
    weigh(group, block.begin);
    ValueRun runs[kKeys];
    const ValueRows rows{.runs = runs,
                         .count = block.find_values(runs),
                         .stride = block.value_stride(),
                         .page_bytes = block.page_tokens()};
    size_t i = 0;
    for (; i + kVecs * kLanes <= value_dim_; i += kVecs * kLanes)
      add_values<kType, kRows, kVecs>(group.first, i, rows, i * Block::kBytes);
    for (; i < value_dim_; i += kLanes)
      add_values<kType, kRows, 1>(group.first, i, rows, i * Block::kBytes);
  }

  template <ScalarType kFrom, int kRows, int kVecs>
  [[gnu::always_inline]] void add_values(size_t q, size_t i, const ValueRows& rows, size_t offset) {
    value_tile<V, kFrom, kRows, kVecs>(scores(q), scratch_.decay + q, rows, offset, values(q) + i,
                                       padded(value_dim_));
  }

  void attend_copied(const Block& block) {
    block.copy_keys(scratch_.keys);
    block.copy_values(scratch_.values);
    for (size_t j = block.low / Tile::kPanel * Tile::kPanel; j < block.high; j += Tile::kPanel)
      for (size_t g = 0; g < group_count_; ++g)
        score_panel(groups_[g], block.begin, j, ahead(block, g, j));
    for (size_t g = 0; g < group_count_; ++g)
      if (!seen_by(groups_[g], block.begin).is_empty()) weigh(groups_[g], block.begin);
    for (size_t i = 0; i < value_dim_; i += Tile::kPanel)
      for (size_t g = 0; g < group_count_; ++g) add_panel(groups_[g], block.begin, i);
  }

  /// What is fetched of the next block while a group meets a panel: keys by the first group, values
  /// by the second, where they lie apart.
  static const std::byte* ahead(const Block& block, size_t group, size_t j) {
    const size_t position = block.begin + kKeys + j;
    if (group > 1 || position >= block.next_end) return nullptr;
    if (block.is_latent()) return group == 0 ? block.key_row_at(position) : nullptr;
    return group == 0 ? block.key_at(position) : block.value_at(position);
  }

  /// Scores of the keys from j of the block on.
  void score_panel(const Group& group, size_t at, size_t j, const std::byte* next) {
    const Seen seen = seen_by(group, at);
    if (j >= seen.high || j + Tile::kPanel <= seen.low) return;
    const auto* panel = reinterpret_cast<const std::byte*>(scratch_.keys + j * dim_);
    const KeyColumns<Tile::kPanelVecs> columns{.first = {panel, panel + kLanes * sizeof(float)},
                                               .stride = Tile::kPanel * sizeof(float),
                                               .ahead = next};
    with_count<Tile::kRows>(group.count, [&](auto rows) {
      score_tile<V, ScalarType::kF32, decltype(rows)::value, Tile::kPanelVecs>(
          query(group.first), dim_, columns, scores(group.first) + j);
    });
  }

  /// Values of the dimensions from i on.
  void add_panel(const Group& group, size_t at, size_t i) {
    const Seen seen = seen_by(group, at);
    if (seen.is_empty()) return;
    const float* panel = scratch_.values + i * kKeys + seen.low * Tile::kPanel;
    const ValueRun run{reinterpret_cast<const std::byte*>(panel), seen.low, seen.high, nullptr};
    const ValueRows rows{.runs = &run, .count = 1, .stride = Tile::kPanel * sizeof(float)};
    with_count<Tile::kRows>(group.count, [&](auto n) {
      constexpr int kRows = decltype(n)::value;
      if (value_dim_ - i > kLanes) {
        add_values<ScalarType::kF32, kRows, Tile::kPanelVecs>(group.first, i, rows, 0);
      } else {
        add_values<ScalarType::kF32, kRows, 1>(group.first, i, rows, 0);
      }
    });
  }

  /// Turns the scores of a group's queries into weights and moves greatest scores and totals on.
  void weigh(const Group& group, size_t at) {
    const Seen seen = seen_by(group, at);
    const bool is_whole =
        group.first_position >= at + seen.end_vec() * kLanes - 1 &&
        span_.first_visible(group.last_position) <= at + seen.first_vec() * kLanes;
    bool is_blind[Tile::kRows] = {};
    float steps[Tile::kRows + kLanes] = {};
    for (size_t r = 0; r < group.count; ++r) {
      float* s = scores(group.first + r);
      cap_scores<V>(s + seen.first_vec() * kLanes, s + seen.end_vec() * kLanes,
                    span_.args->softcap);
      if (!is_whole && !mask(s, span_.position(group.first + r), at, seen)) {
        is_blind[r] = true;
        continue;
      }
      V most = V::load(s + seen.first_vec() * kLanes);
      for (size_t v = seen.first_vec() + 1; v < seen.end_vec(); ++v)
        most = V::max(most, V::load(s + v * kLanes));
      float& greatest = state_.greatest[group.first + r];
      const float before = greatest, now = most.greatest();
      greatest = before > now ? before : now;
      steps[r] = before - greatest;
    }
    for (size_t r = 0; r < group.count; r += kLanes) vec_exp2(V::load(steps + r)).store(steps + r);
    for (size_t r = 0; r < group.count; ++r) {
      const size_t q = group.first + r;
      scratch_.decay[q] = steps[r];
      if (is_blind[r]) continue;
      float* s = scores(q);
      const V greatest = V::all(state_.greatest[q]);
      V sum = V::load(total(q)) * V::all(steps[r]);
      for (size_t v = seen.first_vec(); v < seen.end_vec(); ++v) {
        const V weight = vec_exp2(V::load(s + v * kLanes) - greatest);
        weight.store(s + v * kLanes);
        sum = sum + weight;
      }
      sum.store(total(q));
    }
  }

  /// Hides keys that a query does not see. If it sees none, weights become 0 and the result false.
  bool mask(float* s, size_t position, size_t at, const Seen& group) const {
    const Seen own = seen_by(position, position, at);
    const size_t begin = group.first_vec() * kLanes, end = group.end_vec() * kLanes;
    if (own.is_empty()) {
      for (size_t j = begin; j < end; ++j) s[j] = 0.0f;
      return false;
    }
    for (size_t j = begin; j < own.low; ++j) s[j] = kNothing;
    for (size_t j = own.high; j < end; ++j) s[j] = kNothing;
    return true;
  }

  const AttentionSpan& span_;
  const SpanState& state_;
  const SpanScratch& scratch_;
  const size_t dim_, value_dim_;
  Group groups_[(AttentionSpan::kQueries + Tile::kRows - 1) / Tile::kRows];
  size_t group_count_ = 0;
  bool is_direct_ = false;
};

template <class V>
void attend_span(const AttentionSpan& span, const SpanState& state, float* memory) {
  const SpanScratch scratch = SpanScratch::at(memory, span.args->head_dim);
  if (span.args->kv_type == ScalarType::kF16) {
    SpanKernel<V, ScalarType::kF16>(span, state, scratch).run();
  } else {
    SpanKernel<V, ScalarType::kF32>(span, state, scratch).run();
  }
}

template <class V>
void join_spans(const SpanState& into, const SpanState& part, size_t queries, size_t value_dim) {
  for (size_t q = 0; q < queries; ++q) {
    if (part.greatest[q] == -std::numeric_limits<float>::infinity()) continue;  // saw no key
    const float next = into.greatest[q] > part.greatest[q] ? into.greatest[q] : part.greatest[q];
    float factors[V::kLanes] = {into.greatest[q] - next, part.greatest[q] - next};
    vec_exp2(V::load(factors)).store(factors);
    into.total[q] = into.total[q] * factors[0] + part.total[q] * factors[1];
    into.greatest[q] = next;
    float* values = into.values + q * padded(value_dim);
    map2<V>(values, part.values + q * padded(value_dim), values, padded(value_dim),
            [&](V a, V b) { return V::fma(a, V::all(factors[0]), b * V::all(factors[1])); });
  }
}

/// Writes the queries' results.
template <class V>
void finish_span(const AttentionSpan& span, const SpanState& state) {
  const size_t dim = span.args->value_dim;
  for (size_t q = 0; q < span.queries(); ++q) {
    float* out = span.args->out + (span.token(q) * span.args->heads + span.head(q)) * dim;
    const float* values = state.values + q * padded(dim);
    const V factor = V::all(1.0f / state.total[q]);
    map2<V>(values, values, out, dim, [&](V x, V) { return x * factor; });
  }
}

}  // namespace tandem::kernels
