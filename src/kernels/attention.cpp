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
    sort_heads();
    for (const AttentionRow& row : args_.rows) add_units(row);
  }

  void run() {
    size_t spans = 0;
    for (const Unit& unit : units_) spans += unit.end_span - unit.first_span;
    constexpr size_t kUnitsPerThread = 4;
    const bool few = units_.size() < kUnitsPerThread * pool_.threads();
    if (few && spans > units_.size() && pool_.threads() > 1) {
      run_spans(spans);
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
    const size_t floats = SpanScratch::floats(args_.head_dim);
    if (!std::ranges::any_of(args_.rows, [&](const auto& row) { return takes_tiles(row); }))
      return floats;
    return std::max(floats, kernels_.chunks.scratch(args_.head_dim));
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
    std::fill_n(state.values, span.queries() * padded(args_.head_dim), 0.0f);
  }

  size_t state_floats(const AttentionSpan& span) const {
    return SpanState::floats(span.queries(), args_.head_dim);
  }

  /// Many units: a worker takes a whole one.
  void run_units() {
    size_t most = 0;
    for (const Unit& unit : units_) most = std::max(most, unit.span.queries());
    const size_t state = SpanState::floats(most, args_.head_dim);
    const size_t floats = 2 * state + scratch_floats();
    share(units_.size(), [&](size_t i, size_t worker) {
      Unit& unit = units_[i];
      const size_t queries = unit.span.queries();
      float* memory = pool_.scratch(worker, floats);
      const SpanState all = SpanState::at(memory, queries, args_.head_dim);
      const SpanState part = SpanState::at(memory + state, queries, args_.head_dim);
      start(unit.span, all);
      for (size_t span = unit.first_span; span < unit.end_span; ++span) {
        attend(unit, span, part, memory + 2 * state);
        kernels_.join_spans(all, part, queries, args_.head_dim);
      }
      kernels_.finish_span(unit.span, all);
    });
  }

  /// Few units over long contexts: a worker takes a span, and units are joined afterwards, by the
  /// same operations in the same order.
  void run_spans(size_t count) {
    struct Piece {
      Unit* unit;
      size_t span;
      size_t memory;
    };
    std::vector<Piece> pieces;
    pieces.reserve(count);
    size_t floats = 0;
    for (Unit& unit : units_) {
      unit.memory = floats;
      for (size_t span = unit.first_span; span < unit.end_span; ++span) {
        pieces.push_back({&unit, span, floats});
        floats += state_floats(unit.span);
      }
    }
    float* states = pool_.shared_scratch(floats);
    const size_t own = scratch_floats();
    share(pieces.size(), [&](size_t i, size_t worker) {
      const Piece& piece = pieces[i];
      float* scratch = pool_.scratch(worker, own);
      const size_t queries = piece.unit->span.queries();
      attend(*piece.unit, piece.span, SpanState::at(states + piece.memory, queries, args_.head_dim),
             scratch);
    });
    for (const Unit& unit : units_) join(unit, states + unit.memory);
  }

  void join(const Unit& unit, float* states) {
    const size_t queries = unit.span.queries();
    const SpanState all =
        SpanState::at(pool_.scratch(0, state_floats(unit.span)), queries, args_.head_dim);
    start(unit.span, all);
    for (size_t span = unit.first_span; span < unit.end_span; ++span) {
      kernels_.join_spans(all, SpanState::at(states, queries, args_.head_dim), queries,
                          args_.head_dim);
      states += state_floats(unit.span);
    }
    kernels_.finish_span(unit.span, all);
  }

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
