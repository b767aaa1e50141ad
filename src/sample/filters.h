// Which tokens may be drawn: top_p, min_p, xtc and top_k, without sorting the vocabulary.
#pragma once

#include <span>
#include <vector>

#include "gen/request.h"
#include "sample/row_math.h"

namespace tandem::sample {

struct Candidate {
  gen::TokenId id = 0;
  float logit = 0;
};

/// The order of tokens: by logit, on a tie the lower id first.
inline bool likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

/// Outside (0, 1) it is off.
inline bool uses_top_p(float top_p) { return top_p > 0 && top_p < 1; }

/// Keeps scratch memory of the vocabulary's size between calls. One thread.
class Filters {
 public:
  /// Whether keep() could drop a token.
  static bool any(const gen::Sampling& sampling, size_t vocab);

  /// The tokens that survive, by ascending id, valid until the next call. Probabilities are those
  /// of the un-tempered row; each filter sees what the earlier ones left and nothing is
  /// renormalised but for xtc, which takes the survivors' softmax.
  ///
  ///   top_p  a token stays while the mass of strictly likelier ones is below top_p; ties stay
  ///   min_p  a token stays when its probability is at least min_p times the largest
  ///   xtc    when `xtc` is set: of the tokens above the threshold all but the least likely go;
  ///          exempt ids stay
  ///   top_k  the k likeliest stay; on a tie the lower id
  ///
  /// Requires maxima of this row, the largest one finite. NaN and -infinity never survive; a row
  /// has at least one survivor.
  std::span<const Candidate> keep(std::span<const float> row,
                                  RowMaxima& maxima,
                                  const gen::Sampling& sampling,
                                  bool xtc);

 private:
  float top_p_floor(std::span<const float> row, const RowMaxima& maxima, float top_p);
  void gather(std::span<const float> row, const RowMaxima& maxima, float floor);
  void drop_top_choices(float max, const gen::Sampling& sampling);
  void keep_largest(uint32_t top_k);

  std::vector<float> logits_, weights_;  // of tokens that top_p may keep
  std::vector<Candidate> kept_;
};

}  // namespace tandem::sample
