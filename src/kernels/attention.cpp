#include "kernels/attention.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "kernels/attention_span.h"
#include "kernels/kernel_table.h"

namespace tandem::kernels {
namespace {

constexpr size_t kSpanKeys = AttentionSpan::kSpanKeys;

/// Pages of chunks that ChunkAttention takes hold a multiple of so many tokens.
constexpr size_t kChunkKeys = 16;

/// Query heads sorted by the KV head they read; a group is at most kQueries of one KV head.
struct HeadGroup {
  size_t kv_head = 0;
  size_t first = 0;  // in the sorted heads
  size_t count = 0;
};

/// Queries that are attended together, over all their spans.
struct Unit {
  AttentionSpan span;     // key_begin unset
  bool in_tiles = false;  // attended by the level's ChunkAttention
  size_t first_span = 0;  // spans [first_span, end_span) hold keys that are seen
  size_t end_span = 0;
  size_t memory = 0;  // where its spans' states begin, in floats, when spans are shared out
};

class Attention {
 public:
  Attention(WorkerPool& pool, const AttentionArgs& args)
      : pool_(pool), args_(args), kernels_(kernels_of(pool.level())) {
    TANDEM_CHECK(args_.kv_type != ScalarType::kBf16, "[attention] no pools of bf16");
    if (args_.q_stride == 0) args_.q_stride = args_.heads * args_.head_dim;
    if (args_.value_dim == 0) args_.value_dim = args_.head_dim;
    TANDEM_CHECK(args_.v_pool != nullptr || args_.value_dim <= args_.head_dim,
                 "[attention] values of {} in keys of {}", args_.value_dim, args_.head_dim);
    sort_heads();
    for (const AttentionRow& row : args_.rows) add_units(row);
  }

  void run() {
    size_t spans = 0;
    for (const Unit& unit : units_) spans += unit.end_span - unit.first_span;
    constexpr size_t kUnitsPerThread = 4;
    const bool few = units_.size() < kUnitsPerThread * pool_.threads();
    if (few && spans > units_.size() && pool_.threads() > 1) {
      run_spans();
    } else {
      run_units();
    }
  }

 private:
  void sort_heads() {
    for (size_t kv = 0; kv < args_.kv_heads; ++kv) {
      const size_t first = heads_.size();
      for (uint32_t h = 0; h < args_.heads; ++h) {
        if (args_.kv_head_of[h] == kv) heads_.push_back(h);
      }
      for (size_t at = first; at < heads_.size(); at += AttentionSpan::kQueries) {
        groups_.push_back({kv, at, std::min(AttentionSpan::kQueries, heads_.size() - at)});
      }
    }
    TANDEM_CHECK(heads_.size() == args_.heads, "[attention] a head reads no KV head of this rank");
  }

  /// Later tokens first: they see more keys, and the longest piece should not start last.
  void add_units(const AttentionRow& row) {
    for (const HeadGroup& group : groups_) {
      const bool in_tiles = takes_tiles(row);
      const size_t step = most_queries(in_tiles) / group.count;
      for (size_t end = row.count; end > 0;) {
        const size_t first = end > step ? end - step : 0;
        AttentionSpan span{
            .args = &args_, .row = &row, .first_token = first, .tokens = end - first};
        span.kv_head = group.kv_head;
        span.heads = heads_.data() + group.first;
        span.head_count = group.count;
        Unit unit{.span = span, .in_tiles = in_tiles};
        unit.first_span = span.first_visible(row.start + first) / kSpanKeys;
        unit.end_span = (row.start + end - 1) / kSpanKeys + 1;
        units_.push_back(unit);
        end = first;
      }
    }
  }

  bool takes_tiles(const AttentionRow& row) const {
    return row.is_chunk && kernels_.chunks.attend_span != nullptr &&
           args_.kv_type == ScalarType::kF16 && args_.page_tokens % kChunkKeys == 0;
  }
  size_t most_queries(bool in_tiles) const {
    return in_tiles ? kernels_.chunks.queries : AttentionSpan::kQueries;
  }
  size_t scratch_floats() const {
    const size_t floats = SpanScratch::floats(args_.head_dim, args_.value_dim);
    if (!std::ranges::any_of(args_.rows, [&](const auto& row) { return takes_tiles(row); }))
      return floats;
    return std::max(floats, kernels_.chunks.scratch(args_.head_dim, args_.value_dim));
  }

  /// Calls fn(index, worker) for each index, whichever worker is free first.
  template <class F>
  void share(size_t count, F fn) {
    std::atomic<size_t> next = 0;
    pool_.parallel_for(std::min(count, pool_.threads()), [&](size_t, size_t, size_t worker) {
      for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) fn(i, worker);
    });
  }

  void attend(const Unit& unit, size_t span, const SpanState& state, float* scratch) const {
    AttentionSpan piece = unit.span;
    piece.key_begin = span * kSpanKeys;
    const auto attend_span = unit.in_tiles ? kernels_.chunks.attend_span : kernels_.attend_span;
    attend_span(piece, state, scratch);
  }

  /// The state before the first key: nothing, or the sinks.
  void start(const AttentionSpan& span, const SpanState& state) const {
    for (size_t q = 0; q < span.queries(); ++q) {
      const bool sink = args_.sinks != nullptr;
      state.greatest[q] = sink ? args_.sinks[span.head(q)] * kBitsPerNat : -INFINITY;
      state.total[q] = sink ? 1.0f : 0.0f;
    }
    std::fill_n(state.values, span.queries() * padded(args_.value_dim), 0.0f);
  }

  size_t state_floats(const AttentionSpan& span) const {
    return SpanState::floats(span.queries(), args_.value_dim);
  }

  /// Many units: a worker takes a whole one.
  void run_units() {
    size_t most = 0;
    for (const Unit& unit : units_) most = std::max(most, unit.span.queries());
    const size_t state = SpanState::floats(most, args_.value_dim);
    const size_t floats = 2 * state + scratch_floats();
    share(units_.size(), [&](size_t i, size_t worker) {
      Unit& unit = units_[i];
      const size_t queries = unit.span.queries();
      float* memory = pool_.scratch(worker, floats);
      const SpanState all = SpanState::at(memory, queries, args_.value_dim);
      const SpanState part = SpanState::at(memory + state, queries, args_.value_dim);
      start(unit.span, all);
      for (size_t span = unit.first_span; span < unit.end_span; ++span) {
        attend(unit, span, part, memory + 2 * state);
        kernels_.join_spans(all, part, queries, args_.value_dim);
      }
      kernels_.finish_span(unit.span, all);
    });
  }

  /// One span of one unit.
  struct Piece {
    Unit* unit;
    size_t span;
  };

  /// Few units over long contexts: a worker takes a span. Parts are joined to their unit's state by
  /// the same operations in the same order, in rounds whose parts fit the memory meant for them.
  void run_spans() {
    size_t floats = 0, most = 0;
    for (Unit& unit : units_) {
      unit.memory = floats;
      floats += state_floats(unit.span);
      most = std::max(most, state_floats(unit.span));
    }
    const std::vector<Piece> pieces = pieces_by_span();
    const size_t parts = std::min(pieces.size(), std::max(kPartFloats / most, 2 * pool_.threads()));
    float* states = pool_.shared_scratch(floats + parts * most);
    for (const Unit& unit : units_) start(unit.span, state_at(unit, states));
    for (size_t at = 0; at < pieces.size(); at += parts) {
      const auto round = std::span(pieces).subspan(at, std::min(parts, pieces.size() - at));
      attend_round(round, states + floats, most);
      join_round(round, states, states + floats, most);
    }
    for (const Unit& unit : units_) kernels_.finish_span(unit.span, state_at(unit, states));
  }

  /// Spans ascend, so that a round holds pieces of every unit.
  std::vector<Piece> pieces_by_span() {
    std::vector<Piece> out;
    size_t first = SIZE_MAX, end = 0;
    for (const Unit& unit : units_) {
      first = std::min(first, unit.first_span);
      end = std::max(end, unit.end_span);
    }
    for (size_t span = first; span < end; ++span) {
      for (Unit& unit : units_) {
        if (unit.first_span <= span && span < unit.end_span) out.push_back({&unit, span});
      }
    }
    return out;
  }

  SpanState state_at(const Unit& unit, float* states) const {
    return SpanState::at(states + unit.memory, unit.span.queries(), args_.value_dim);
  }

  /// Fills a part of `floats` floats for each piece.
  void attend_round(std::span<const Piece> round, float* parts, size_t floats) {
    const size_t own = scratch_floats();
    share(round.size(), [&](size_t i, size_t worker) {
      const Unit& unit = *round[i].unit;
      attend(unit, round[i].span,
             SpanState::at(parts + i * floats, unit.span.queries(), args_.value_dim),
             pool_.scratch(worker, own));
    });
  }

  /// Every unit takes its parts in order; units that are little work are not shared out.
  void join_round(std::span<const Piece> round, float* states, float* parts, size_t floats) {
    const auto join = [&](const Unit& unit) {
      const size_t queries = unit.span.queries();
      for (size_t i = 0; i < round.size(); ++i) {
        if (round[i].unit != &unit) continue;
        kernels_.join_spans(state_at(unit, states),
                            SpanState::at(parts + i * floats, queries, args_.value_dim), queries,
                            args_.value_dim);
      }
    };
    if (round.size() * floats < kSharedFloats) {
      for (const Unit& unit : units_) join(unit);
    } else {
      share(units_.size(), [&](size_t i, size_t) { join(units_[i]); });
    }
  }

  static constexpr size_t kPartFloats = (16u << 20) / sizeof(float);    // of parts in a round
  static constexpr size_t kSharedFloats = (64u << 10) / sizeof(float);  // parts worth sharing out

  WorkerPool& pool_;
  AttentionArgs args_;
  const KernelTable& kernels_;
  std::vector<uint32_t> heads_;
  std::vector<HeadGroup> groups_;
  std::vector<Unit> units_;
};

}  // namespace

void attention(WorkerPool& pool, const AttentionArgs& args) { Attention(pool, args).run(); }

}  // namespace tandem::kernels
