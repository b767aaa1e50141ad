// Signals as something to wait for.
#pragma once

#include <csignal>
#include <initializer_list>

namespace tandem::app {

/// Blocks signals in the calling thread, and in those it starts later, so that they can be waited
/// for. Make it before any thread starts.
class SignalSet {
 public:
  explicit SignalSet(std::initializer_list<int> signals);

  /// Blocks until one of them comes.
  void wait() const;
  /// Takes one that came.
  bool pending() const;

 private:
  sigset_t set_{};
};

}  // namespace tandem::app
