// Draws one token from one row of logits.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gen/event.h"
#include "gen/request.h"
#include "sample/filters.h"
#include "sample/penalties.h"

namespace tandem::sample {

/// Why a request fails whose row has no logit above -infinity.
inline constexpr std::string_view kNoFiniteLogit =
    "the model's logits are not finite, so that no token can be drawn: its weights may be damaged, "
    "or its numbers too large for the type that they are computed in";

/// One row to draw from. The drawn token's position is history.size().
struct DrawInput {
  std::span<const float> logits;          // [vocab]
  std::span<const gen::TokenId> history;  // prompt and answer so far
  const gen::Sampling& sampling;
  std::span<const gen::TokenId> banned = {};  // cannot be drawn: stop ids before min_tokens
  std::optional<uint32_t> logprobs = {};      // as gen::Request::logprobs
  /// A bit for each id that may be drawn, from bit 0 of the first word; empty: all. At least one
  /// bit is set, and ids past its end are forbidden.
  std::span<const uint32_t> allowed = {};
  /// Of the request, so that a long history is not counted at each draw; null: nothing is kept.
  PenaltyMemory* penalties = nullptr;
};

/// Order: bans, bias, repetition, presence, frequency; then logprobs = log softmax of the row; then
/// what is not allowed goes, as if it had no logit; then top_p, min_p, xtc and top_k (filters.h) on
/// it; then one token of softmax(logits / temperature) over the survivors. Temperature 0 takes the
/// largest logit, the lowest id on a tie, and ignores the filters. Every random number is keyed by
/// (seed, choice, position, purpose): the token depends on nothing but the input.
///
/// Keeps scratch memory between calls. One thread; several threads use a Sampler each.
class Sampler {
 public:
  /// Error: kInternal when no token has a usable logit: all are NaN or -infinity (kNoFiniteLogit),
  /// or the others are banned or not allowed.
  Result<gen::Token> draw(const DrawInput& input);

 private:
  std::span<const float> prepare(const DrawInput& input);
  void keep_allowed(std::span<const float> row, std::span<const uint32_t> allowed);
  gen::TokenId choose(std::span<const float> row, const DrawInput& input);
  gen::TokenId draw_filtered(std::span<const float> row, const DrawInput& input);
  gen::TokenId draw_any(std::span<const float> row, const DrawInput& input);
  std::vector<gen::TokenLogprob> likeliest(std::span<const float> row, double norm, uint32_t count);

  Filters filters_;
  RowMaxima maxima_;            // of the row that is drawn from
  std::vector<float> row_;      // the changed copy of a row
  std::vector<double> sums_;    // partial sums of a draw
  std::vector<Candidate> top_;  // the likeliest tokens
};

}  // namespace tandem::sample
