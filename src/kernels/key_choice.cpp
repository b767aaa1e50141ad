#include "kernels/key_choice.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "kernels/kernel_table.h"

namespace tandem::kernels {
namespace {

constexpr size_t kMostScores = size_t{4} << 20;  // floats held at once, but for one long row

/// A token that sees more positions than it may take.
struct Chooser {
  const AttentionRow* row;
  size_t token;     // in q
  size_t position;  // it sees [0, position]
  size_t scores;    // where its scores begin among those held
};

class KeyChoice {
 public:
  KeyChoice(WorkerPool& pool, const KeyChoiceArgs& args)
      : pool_(pool), args_(args), kernels_(kernels_of(pool.level())) {
    if (args_.q_stride == 0) args_.q_stride = args_.heads * args_.dim;
    if (args_.weights_stride == 0) args_.weights_stride = args_.heads;
    for (const AttentionRow& row : args_.rows)
      for (size_t t = 0; t < row.count; ++t)
        if (row.start + t >= args_.top_k)
          choosers_.push_back({&row, row.first_token + t, row.start + t, 0});
  }

  void run() {
    for (size_t begin = 0; begin < choosers_.size();) {
      size_t floats = 0, end = begin;
      while (end < choosers_.size() && (end == begin || floats < kMostScores)) {
        choosers_[end].scores = floats;
        floats += padded(choosers_[end].position + 1);
        ++end;
      }
      run_some(std::span(choosers_).subspan(begin, end - begin), floats);
      begin = end;
    }
  }

 private:
  struct Piece {
    const Chooser* chooser;
    size_t key_begin;
  };

  void run_some(std::span<const Chooser> some, size_t floats) {
    float* scores = pool_.shared_scratch(floats);
    std::vector<Piece> pieces;
    for (const Chooser& each : some)
      for (size_t at = 0; at <= each.position; at += AttentionSpan::kSpanKeys)
        pieces.push_back({&each, at});
    const size_t own = KeyScores::scratch_floats(args_.heads, args_.dim);
    share(pieces.size(), [&](size_t i, size_t worker) {
      const auto& [chooser, begin] = pieces[i];
      const size_t end = std::min(begin + AttentionSpan::kSpanKeys, chooser->position + 1);
      kernels_.score_keys({.args = &args_,
                           .row = chooser->row,
                           .token = chooser->token,
                           .begin = begin,
                           .end = end,
                           .scores = scores + chooser->scores},
                          pool_.scratch(worker, own));
    });
    share(some.size(), [&](size_t i, size_t) { choose(some[i], scores + some[i].scores); });
  }

  void choose(const Chooser& chooser, const float* scores) const {
    std::vector<uint32_t> order(chooser.position + 1);
    std::iota(order.begin(), order.end(), 0U);
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(args_.top_k);
    // NaN has no place in an order: such a key counts as the worst.
    const auto value = [&](uint32_t key) {
      return scores[key] == scores[key] ? scores[key] : -INFINITY;
    };
    std::nth_element(order.begin(), end - 1, order.end(), [&](uint32_t a, uint32_t b) {
      return value(a) > value(b) || (value(a) == value(b) && a < b);
    });
    std::sort(order.begin(), end);
    std::copy(order.begin(), end, args_.chosen + chooser.token * args_.top_k);
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
  std::vector<Chooser> choosers_;
};

}  // namespace

void choose_keys(WorkerPool& pool, const KeyChoiceArgs& args) {
  TANDEM_CHECK(args.top_k > 0, "[choose_keys] none");
  KeyChoice(pool, args).run();
}

}  // namespace tandem::kernels
