// Requests, their pages and the plans that run them, for the tests of this folder.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <vector>

#include "plan/step_plan.h"
#include "runner/model_runner.h"

namespace tandem::runner {

using Tokens = std::vector<plan::TokenId>;
using Logits = std::vector<float>;

inline Tokens random_tokens(size_t count, uint32_t vocab, uint64_t seed) {
  std::mt19937_64 random(seed);
  Tokens out(count);
  for (auto& t : out) t = static_cast<plan::TokenId>(random() % vocab);
  return out;
}

/// Hands out the pages of a pool in a shuffled order.
class Pages {
 public:
  Pages(uint32_t pages, uint32_t page_tokens, uint64_t seed)
      : page_tokens_(page_tokens), free_(pages) {
    std::iota(free_.begin(), free_.end(), 0U);
    std::shuffle(free_.begin(), free_.end(), std::mt19937_64(seed));
  }

  /// Makes a table cover `length` positions.
  void cover(std::vector<plan::PageId>& table, size_t length) {
    while (table.size() * page_tokens_ < length) {
      TANDEM_CHECK(!free_.empty(), "the test needs more pages");
      table.push_back(free_.back());
      free_.pop_back();
    }
  }

  uint32_t page_tokens() const { return page_tokens_; }
  size_t free() const { return free_.size(); }

  /// Takes back the first `count` pages of a table; they are handed out again before any other.
  void take_back(std::vector<plan::PageId>& table, size_t count) {
    const auto end = table.begin() + static_cast<ptrdiff_t>(count);
    free_.insert(free_.end(), table.begin(), end);
    table.erase(table.begin(), end);
  }

 private:
  uint32_t page_tokens_;
  std::vector<plan::PageId> free_;
};

/// A history that grows chunk by chunk.
struct History {
  plan::RequestId id = 0;
  Tokens tokens;
  std::vector<plan::PageId> pages = {};
  size_t done = 0;
  uint32_t window_start = 0;
  std::vector<plan::PageId> window_pages = {};
  std::array<uint32_t, 2> slots = {};  // of recurrent state, by turns
  bool turn = false;

  /// The next `count` tokens as a row; logits when it reaches the end or `always`.
  plan::Row next(size_t count, Pages& pool, bool always = false) {
    count = std::min(count, tokens.size() - done);
    pool.cover(pages, done + count);
    plan::Row row{.request = id,
                  .start = static_cast<uint32_t>(done),
                  .tokens = Tokens(tokens.begin() + static_cast<ptrdiff_t>(done),
                                   tokens.begin() + static_cast<ptrdiff_t>(done + count)),
                  .pages = pages};
    done += count;
    row.wants_logits = always || done == tokens.size();
    return row;
  }

  /// Gives a row of next() its window pages, after taking back those that the window has left.
  void show(plan::Row& row, uint32_t window, Pages& pool) {
    const uint32_t page = pool.page_tokens();
    const uint32_t first = row.start + 1 > window ? (row.start + 1 - window) / page : 0;
    pool.take_back(window_pages, first - window_start / page);
    window_start = first * page;
    pool.cover(window_pages, row.start + row.tokens.size() - window_start);
    row.window_start = window_start;
    row.window_pages = window_pages;
  }

  /// Lets a row of next() go on from the state that the row before it left, and leave its own.
  void carry(plan::Row& row) {
    if (row.start > 0) row.state = slots[turn ? 1 : 0];
    turn = !turn;
    row.saves.push_back(
        {.tokens = static_cast<uint32_t>(row.tokens.size()), .slot = slots[turn ? 1 : 0]});
  }
};

/// Plans that prefill one history in chunks; logits at each chunk's end.
inline std::vector<plan::StepPlan> chunked_plans(
    const Tokens& tokens, size_t chunk, uint32_t pages, uint32_t page_tokens, uint64_t seed = 7) {
  Pages pool(pages, page_tokens, seed);
  History history{.id = 1, .tokens = tokens};
  std::vector<plan::StepPlan> out;
  while (history.done < tokens.size()) {
    plan::StepPlan plan{.sequence = out.size()};
    plan.rows.push_back(history.next(chunk, pool, true));
    out.push_back(std::move(plan));
  }
  return out;
}

inline Logits to_vector(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

inline float largest_difference(const Logits& a, const Logits& b) {
  if (a.size() != b.size()) return INFINITY;
  float most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(a[i] - b[i]));
  return most;
}

}  // namespace tandem::runner
