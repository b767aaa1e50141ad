// Constraint: what a request's grammar allows, one token after another. grammar/ implements it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "gen/request.h"

namespace tandem::gen {

/// A bit for each id, from bit 0 of the first word: set when the id may come next.
using TokenMask = std::vector<uint32_t>;

/// One answer's place in its grammar. One thread at a time. An error is final: no token may be
/// drawn any more.
class Constraint {
 public:
  virtual ~Constraint() = default;

  /// Takes what comes next. Error: kInvalid when the grammar does not allow it.
  virtual Status take(std::span<const TokenId> tokens) = 0;

  /// What may come next; stop ids once the answer is complete, and only they when nothing can
  /// follow. Error: kTooLarge when the grammar costs more than its bounds.
  virtual Result<TokenMask> allowed() = 0;
};

/// Makes constraints over one vocabulary. Thread-safe.
class ConstraintFactory {
 public:
  virtual ~ConstraintFactory() = default;

  using Made = std::function<void(Result<std::unique_ptr<Constraint>>)>;

  /// Calls `made` once, on any thread, perhaps before it returns. Errors: kInvalid (the grammar is
  /// wrong, costs too much to prepare, or has what is not offered), those of loading a vocabulary.
  virtual void make(const Grammar& grammar, Made made) = 0;
};

}  // namespace tandem::gen
