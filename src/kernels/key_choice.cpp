#include "kernels/key_choice.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "kernels/kernel_table.h"

namespace tandem::kernels {
namespace {

constexpr size_t kMostScores = size_t{4} << 20;  // floats held at once, but for one group

/// Tokens of a row, one after the other, that see more than they may take.
struct ChoosingTokens {
  const AttentionRow* row = nullptr;
  size_t first = 0;  // in the row
  size_t count = 0;
  size_t scores = 0;  // where theirs begin among those held: [count, lists, stride]
  size_t stride = 0;

  size_t position(size_t t) const { return row->start + first + t; }
  size_t end() const { return position(count); }
  size_t token() const { return row->first_token + first; }
};

class KeyChoice {
 public:
  KeyChoice(WorkerPool& pool, const KeyChoiceArgs& args)
      : pool_(pool), args_(args), kernels_(kernels_of(pool.level())) {
    if (args_.q_stride == 0) args_.q_stride = args_.heads * args_.dim;
    if (args_.weights_stride == 0) args_.weights_stride = args_.heads;
    const size_t unit = std::lcm(args_.block, AttentionSpan::kBlockKeys);
    span_ = (AttentionSpan::kSpanKeys + unit - 1) / unit * unit;
    for (const AttentionRow& row : args_.rows) add_row(row);
  }

  void run() {
    for (size_t begin = 0; begin < groups_.size();) {
      size_t floats = 0, end = begin;
      while (end < groups_.size() && (end == begin || floats < kMostScores)) {
        ChoosingTokens& group = groups_[end++];
        group.scores = floats;
        floats += group.count * args_.lists() * group.stride;
      }
      run_some(std::span(groups_).subspan(begin, end - begin), floats);
      begin = end;
    }
  }

 private:
  /// A group's keys from a position on.
  struct Piece {
    const ChoosingTokens* group;
    size_t begin;
  };
  /// One choice.
  struct List {
    const ChoosingTokens* group;
    size_t token;  // in the group
    size_t index;
  };

  void add_row(const AttentionRow& row) {
    const size_t taken = args_.top_k * args_.block;
    size_t first = row.start < taken ? taken - row.start : 0;
    while (first < row.count) {
      ChoosingTokens group{.row = &row, .first = first};
      group.count = std::min(KeyScores::most_tokens(args_.heads), row.count - first);
      group.stride = padded((group.end() - 1) / args_.block + 1);
      groups_.push_back(group);
      first += group.count;
    }
  }

  void run_some(std::span<const ChoosingTokens> some, size_t floats) {
    float* scores = pool_.shared_scratch(floats);
    std::vector<Piece> pieces;
    std::vector<List> lists;
    for (const ChoosingTokens& group : some) {
      for (size_t at = 0; at < group.end(); at += span_) pieces.push_back({&group, at});
      for (size_t t = 0; t < group.count; ++t)
        for (size_t i = 0; i < args_.lists(); ++i) lists.push_back({&group, t, i});
    }
    const size_t own = KeyScores::scratch_floats(args_.heads, args_.dim);
    share(pieces.size(),
          [&](size_t i, size_t worker) { score(pieces[i], scores, pool_.scratch(worker, own)); });
    share(lists.size(), [&](size_t i, size_t) { choose(lists[i], scores); });
  }

  void score(const Piece& piece, float* scores, float* scratch) const {
    const ChoosingTokens& group = *piece.group;
    kernels_.score_keys({.args = &args_,
                         .row = group.row,
                         .token = group.token(),
                         .count = group.count,
                         .position = group.position(0),
                         .begin = piece.begin,
                         .end = std::min(piece.begin + span_, group.end()),
                         .scores = scores + group.scores,
                         .stride = group.stride},
                        scratch);
  }

  void choose(const List& list, float* all) const {
    const ChoosingTokens& group = *list.group;
    const size_t at = list.token * args_.lists() + list.index;
    const std::span<float> scores(all + group.scores + at * group.stride,
                                  group.position(list.token) / args_.block + 1);
    put_in_order(scores);
    std::vector<uint32_t> best(scores.size());
    std::iota(best.begin(), best.end(), 0U);
    const auto end = best.begin() + static_cast<std::ptrdiff_t>(args_.top_k);
    std::nth_element(best.begin(), end - 1, best.end(), [&](uint32_t a, uint32_t b) {
      return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
    });
    std::sort(best.begin(), end);
    const size_t first = group.token() * args_.lists() + at;
    std::copy(best.begin(), end, args_.chosen + first * args_.top_k);
  }

  /// NaN, which has no place in an order, becomes the least; what is always chosen the greatest.
  void put_in_order(std::span<float> scores) const {
    for (float& score : scores)
      score = score == score ? std::min(score, std::numeric_limits<float>::max()) : -INFINITY;
    std::fill_n(scores.begin(), args_.first_blocks, INFINITY);
    std::fill_n(scores.rbegin(), args_.last_blocks, INFINITY);
  }

  /// Calls fn(index, worker) for each index, whichever worker is free first.
  template <class F>
  void share(size_t count, F fn) {
    std::atomic<size_t> next = 0;
    pool_.parallel_for(std::min(count, pool_.threads()), [&](size_t, size_t, size_t worker) {
      for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) fn(i, worker);
    });
  }

  WorkerPool& pool_;
  KeyChoiceArgs args_;
  const KernelTable& kernels_;
  size_t span_;  // keys of a piece
  std::vector<ChoosingTokens> groups_;
};

}  // namespace

void choose_keys(WorkerPool& pool, const KeyChoiceArgs& args) {
  TANDEM_CHECK(args.top_k > 0 && args.first_blocks + args.last_blocks <= args.top_k,
               "[choose_keys] {} and {} blocks of {}", args.first_blocks, args.last_blocks,
               args.top_k);
  KeyChoice(pool, args).run();
}

}  // namespace tandem::kernels
