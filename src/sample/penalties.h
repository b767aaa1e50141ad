// What changes logits before anything is drawn: bans, bias and the three penalties.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gen/request.h"

namespace tandem::sample {

/// Keeps scratch memory of the vocabulary's size between calls. One thread.
class Penalties {
 public:
  /// Whether apply() would change anything.
  static bool any(const gen::Sampling& sampling);

  /// Changes `row` [vocab] in the field's order: bias is added; repetition divides positive and
  /// multiplies other logits of each id in its context once; presence is subtracted once an id;
  /// frequency once an occurrence. `history` is prompt and answer, the newest last; ids outside the
  /// vocabulary are passed over.
  /// Cost  one pass over each active penalty's context.
  void apply(std::span<float> row,
             const gen::Sampling& sampling,
             std::span<const gen::TokenId> history);

 private:
  void count(std::span<const gen::TokenId> history, uint32_t context, size_t vocab);

  std::vector<uint32_t> counts_;       // [vocab], zero between penalties
  std::vector<gen::TokenId> present_;  // distinct ids of the context
};

}  // namespace tandem::sample
