// The grammars that were compiled last: agents send the same tools and forms with every turn.
#pragma once

#include <list>
#include <mutex>

#include "base/result.h"
#include "gen/request.h"
#include "text/bridge.h"

namespace tandem::grammar {

/// Matchers at their beginning, up to 16 of up to 512 KiB of sources together, the last used first.
/// Thread-safe.
class KeptMatchers {
 public:
  /// A copy for one answer. Error: kNotFound.
  Result<text::bridge::MatcherHandle> copy(const gen::Grammar& grammar);
  /// Keeps a copy of one that has not taken anything yet.
  void keep(const gen::Grammar& grammar, const tb_matcher& matcher);

  /// Whether set_checked() was called since it was kept.
  bool is_checked(const gen::Grammar& grammar);
  void set_checked(const gen::Grammar& grammar);

 private:
  struct Kept {
    gen::Grammar grammar;
    text::bridge::MatcherHandle matcher;
    bool is_checked = false;
  };

  Kept* find(const gen::Grammar& grammar);

  std::mutex mutex_;
  // Guarded by mutex_.
  std::list<Kept> kept_;
  size_t bytes_ = 0;
};

}  // namespace tandem::grammar
