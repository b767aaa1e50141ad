// The grammars that were compiled last: agents send the same tools and forms with every turn.
#pragma once

#include <list>
#include <mutex>

#include "base/result.h"
#include "gen/request.h"
#include "text/bridge.h"

namespace tandem::grammar {

/// Matchers at their beginning, up to 16, the last used first. Thread-safe.
class KeptMatchers {
 public:
  /// What they and their sources may take in memory together: one that takes more is not kept.
  static constexpr size_t kMostBytes = size_t{64} << 20;

  explicit KeptMatchers(size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

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
    size_t bytes = 0;
    bool is_checked = false;
  };

  Kept* find(const gen::Grammar& grammar);

  const size_t most_bytes_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::list<Kept> kept_;
  size_t bytes_ = 0;
};

}  // namespace tandem::grammar
