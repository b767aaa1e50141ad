// TokenMasks: a request's constraint at work.
#pragma once

#include <functional>
#include <memory>
#include <optional>
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

  /// Borrows the workers; null: take() makes the mask itself.
  TokenMasks(Prepared prepared, Workers* workers);
  /// A mask that no worker has begun yet is not made, and nobody is called any more.
  ~TokenMasks();
  TokenMasks(const TokenMasks&) = delete;
  TokenMasks& operator=(const TokenMasks&) = delete;

  using Mask = Result<std::span<const uint32_t>>;

  /// The mask, valid until take() and never empty. Nothing while it is being made: then `ready` is
  /// called on a worker's thread, once, when it is there. Never waits.
  std::optional<Mask> next(std::function<void()> ready);

  /// The token that was drawn under next(). Returns at once where there are workers.
  void take(gen::TokenId token);

 private:
  struct State;

  Workers* const workers_;
  const std::shared_ptr<State> state_;  // also the running task's, which may outlive the request
};

}  // namespace tandem::engine
