// TokenMasks: a request's constraint at work.
#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "base/workers.h"
#include "gen/constraint.h"

namespace tandem::engine {

/// Knows what the next token may be. The mask after a token is made by a worker, while the step
/// that computes its logits runs. Owned by the engine thread.
class TokenMasks {
 public:
  /// A constraint with its next mask.
  struct Prepared {
    std::unique_ptr<gen::Constraint> constraint;
    gen::TokenMask mask;
  };

  /// Takes what was emitted already and makes the first mask, which may cost much. Any thread.
  static Result<Prepared> prepare(std::unique_ptr<gen::Constraint> constraint,
                                  std::span<const gen::TokenId> emitted);

  /// Borrows the workers.
  TokenMasks(Prepared prepared, Workers& workers);

  /// Waits until the mask is there; it is valid until take(). Never empty.
  Result<std::span<const uint32_t>> next();

  /// The token that was drawn under next(). Returns at once.
  void take(gen::TokenId token);

 private:
  struct State;

  Workers& workers_;
  std::shared_ptr<State> state_;  // also the running task's, which may outlive the request
};

}  // namespace tandem::engine
