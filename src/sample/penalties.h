// What changes logits before anything is drawn: bans, bias and the three penalties.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gen/request.h"

namespace tandem::sample {

/// How often each id is among the newest tokens of a history that grows. One thread.
class TokenCounts {
 public:
  /// Of the last `context` tokens; 0: of all.
  explicit TokenCounts(uint32_t context) : context_(context) {}

  uint32_t context() const { return context_; }

  /// Follows the history: looks only at what was added since the last call, and at what has left
  /// the context. A history that does not go on from the last one is counted anew. Ids outside the
  /// vocabulary are passed over.
  void follow(std::span<const gen::TokenId> history, size_t vocab);

  /// The distinct ids, in no particular order.
  std::span<const gen::TokenId> present() const { return present_; }
  uint32_t count(gen::TokenId id) const { return counts_[static_cast<size_t>(id)]; }

 private:
  void forget();
  void add(gen::TokenId id);
  void remove(gen::TokenId id);
  bool is_known(gen::TokenId id) const {
    return id >= 0 && static_cast<size_t>(id) < counts_.size();
  }

  uint32_t context_;
  size_t begin_ = 0;  // counted: [begin_, end_) of the history
  size_t end_ = 0;
  gen::TokenId last_ = 0;         // the token before end_
  std::vector<uint32_t> counts_;  // [vocab]
  std::vector<uint32_t> places_;  // [vocab], of the present ids in present_
  std::vector<gen::TokenId> present_;
};

/// What the penalties of one request remember from draw to draw. Empty until they are used; then it
/// takes 8 bytes an id of the vocabulary for each context size.
class PenaltyMemory {
 public:
  /// The counts of this context after `history`.
  const TokenCounts& counts(uint32_t context, std::span<const gen::TokenId> history, size_t vocab);

 private:
  std::vector<TokenCounts> all_;
};

/// Whether apply_penalties() would change anything.
bool has_penalties(const gen::Sampling& sampling);

/// Changes `row` [vocab] in the field's order: bias is added; repetition divides positive and
/// multiplies other logits of each id in its context once; presence is subtracted once an id;
/// frequency once an occurrence. `history` is prompt and answer, the newest last; ids outside the
/// vocabulary are passed over.
/// Cost  one pass over each context's distinct ids, and over what `memory` has not seen yet.
void apply_penalties(std::span<float> row,
                     const gen::Sampling& sampling,
                     std::span<const gen::TokenId> history,
                     PenaltyMemory& memory);

}  // namespace tandem::sample
