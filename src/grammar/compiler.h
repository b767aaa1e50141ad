// Compiler: grammars to constraints, on threads of its own.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/result.h"
#include "gen/constraint.h"
#include "grammar/vocabulary.h"

namespace tandem::grammar {

/// Runs a task on a thread of its own, which nobody joins, with a stack for deep grammars. Throws
/// std::system_error where there can be none.
void start_thread(std::function<void()> task);

struct CompilerOptions {
  /// A grammar that takes longer, the trial of its answers included, is refused. The first ones
  /// also wait for the vocabulary, which is not counted.
  std::chrono::milliseconds time{800};
  /// Threads that compile at once. One that goes on after its time counts until it ends: nothing
  /// can stop it.
  uint32_t most_running = 4;
  std::function<void(std::function<void()>)> start = start_thread;
};

/// Prepares the vocabulary when the first grammar comes, or prepare() is called. May be destroyed
/// at any time: what runs goes on by itself, what waits is dropped without a word. Keeps what it
/// compiled last, so that a grammar that comes again costs a copy. Thread-safe.
class Compiler final : public gen::ConstraintFactory {
 public:
  explicit Compiler(LoadVocabulary load, CompilerOptions options = {});
  ~Compiler() override;
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  /// Begins to prepare the vocabulary. Returns at once.
  void prepare();

  /// See gen::ConstraintFactory. Never waits. Errors besides those: kBusy when too many compile, or
  /// when there can be no thread.
  /// The time is not bounded but for requests' deadlines: check() was asked before.
  void make(const gen::Grammar& grammar, Made made) override;

  using Duration = std::chrono::steady_clock::duration;

  /// What all grammars of one request may take together.
  Duration time() const;

  /// Whether make() would take it, and beginnings of answers stay within the matcher's bounds;
  /// waits no longer than what is left of the time, and takes that from it. Errors: those of
  /// make().
  Status check(const gen::Grammar& grammar, Duration& left);
  /// The same with time() of its own.
  Status check(const gen::Grammar& grammar);

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace tandem::grammar
