// Beginnings of answers under a grammar, tried before a request is taken.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "base/result.h"
#include "gen/request.h"
#include "text/bridge.h"

namespace tandem::grammar {

struct Trial {
  uint32_t logits = 0;                                   // entries of a logits row
  std::vector<gen::TokenId> eos = {};                    // which end an answer
  bool is_ambiguous = false;                             // a client's own rules: walked further
  std::function<bool()> is_over = [] { return false; };  // no more time, or nobody waits
};

/// Walks through a few beginnings of copies of a matcher that has taken nothing: bounds of the
/// matcher's work that show only once it takes tokens should not be met first in the middle of an
/// answer. A beginning goes on as long as what the masks follow grows. Errors: kInvalid, over such
/// a bound; the time was over before much was read, and each token cost more than those before.
Status try_beginnings(const tb_matcher& matcher, const Trial& trial);

}  // namespace tandem::grammar
